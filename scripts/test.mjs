// `npm test`: redis-server if it is missing, the type check, the linter, then all tests. Ends with the plain line
// `N passed, N failed`, in which the type check and the linter count as one each. Arguments go to vitest:
// `npm test -- test/light -t 'stale'`.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { parseCLI, startVitest } from 'vitest/node'
import { requireRedis } from './redis.mjs'

process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
const require = createRequire(import.meta.url)

requireRedis()
const checks = [
  check('type check', 'typescript', 'tsc', ['-p', 'tsconfig.json']),
  check('lint', 'oxlint', 'oxlint', ['--deny-warnings']),
]
const tests = await runTests(process.argv.slice(2))
const passed = checks.filter((ok) => ok).length + tests.passed
const failed = checks.filter((ok) => !ok).length + tests.failed
const line = `${passed} passed, ${failed} failed${tests.skipped === 0 ? '' : `, ${tests.skipped} skipped`}`
// Whatever a test left open must not keep the answer from being given.
process.stdout.write(`${line}\n`, () => process.exit(failed === 0 ? 0 : 1))

function check(name, owner, command, args) {
  const path = join(dirname(require.resolve(`${owner}/package.json`)), 'bin', command)
  const { status } = spawnSync(process.execPath, [path, ...args], { stdio: ['ignore', 'inherit', 'inherit'] })
  process.stdout.write(status === 0 ? `${name}: good\n` : `${name}: failed, see above\n`)
  return status === 0
}

async function runTests(args) {
  const { filter, options } = parseCLI(['vitest', 'run', ...args])
  let vitest
  try {
    vitest = await startVitest('test', filter, { ...options, run: true, watch: false })
  } catch (error) {
    process.stderr.write(`the tests did not start: ${error instanceof Error ? error.message : String(error)}\n`)
    return { passed: 0, failed: 1, skipped: 0 }
  }
  const count = { passed: 0, failed: vitest.state.getUnhandledErrors().length, skipped: 0 }
  const modules = vitest.state.getTestModules()
  for (const module of modules) {
    for (const test of module.children.allTests()) {
      const { state } = test.result()
      if (state === 'passed' || state === 'failed') count[state]++
      else count.skipped++
    }
    // A file that cannot be loaded, and a beforeAll that throws, have no test of their own to fail.
    count.failed += module.errors().length
    for (const suite of module.children.allSuites()) count.failed += suite.errors().length
  }
  // A filter that matches nothing must not look like success; vitest has said so.
  if (modules.length === 0 && count.failed === 0) count.failed = 1
  await vitest.close()
  return count
}
