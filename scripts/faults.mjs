// `npm run test:faults [seconds] [seed]`: the faults test of streams in its long form, two minutes of load unless told
// otherwise, over each store. A seed that failed chooses the same faults again.
import { spawnSync } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { requireRedis } from './redis.mjs'

const [seconds = '120', seed] = process.argv.slice(2)
if (!/^[1-9][0-9]{0,4}$/.test(seconds) || (seed !== undefined && !/^[0-9]{1,10}$/.test(seed))) {
  process.stderr.write('usage: npm run test:faults -- [seconds] [seed]\n')
  process.exit(2)
}
process.chdir(dirname(dirname(fileURLToPath(import.meta.url))))
requireRedis()
const vitest = join(dirname(createRequire(import.meta.url).resolve('vitest/package.json')), 'vitest.mjs')
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/e2e/stream-faults', '--disable-console-intercept'], {
  stdio: 'inherit',
  env: { ...process.env, SION_FAULTS_SECONDS: seconds, ...(seed === undefined ? {} : { SION_FAULTS_SEED: seed }) },
})
process.exit(status ?? 1)
