// `npm run docs`: writes into docs what the code says, between `<!-- generated: NAME -->` and `<!-- end -->`: tables of
// codes, and the help of every command. With --check it writes nothing and exits 1 where a document is not up to date.
// It reads dist, so build first.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { CODES } = await import('../dist/x402/codes.js')
const { LIGHT_CLIENT_ERRORS } = await import('../dist/light/errors.js')

const generators = { 'x402-codes': x402Codes, 'light-client-errors': lightClientErrors, 'exit-codes': exitCodes, commands }

const stale = []
for (const name of readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md'))) {
  const path = join(root, 'docs', name)
  const before = readFileSync(path, 'utf8')
  const after = before.replace(/(<!-- generated: ([a-z0-9-]+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, start, region, end) => {
    if (!Object.hasOwn(generators, region)) throw new Error(`docs/${name}: there is nothing to generate that is called ${region}`)
    return `${start}\n${generators[region]()}\n\n${end}`
  })
  if (after === before) continue
  stale.push(`docs/${name}`)
  if (!process.argv.includes('--check')) writeFileSync(path, after)
}
if (process.argv.includes('--check') && stale.length > 0) {
  process.stderr.write(`not what the code says any more: ${stale.join(', ')}; run: npm run build && npm run docs\n`)
  process.exit(1)
}
process.stdout.write(stale.length === 0 ? 'docs are up to date\n' : `written: ${stale.join(', ')}\n`)

function x402Codes() {
  const rows = Object.entries(CODES).map(([code, { status, advice }]) => [`\`${code}\``, status, advice])
  return table(['code', 'status', 'what a program should do'], rows)
}

function lightClientErrors() {
  const rows = Object.entries(LIGHT_CLIENT_ERRORS).map(([code, meaning]) => [`\`${code}\``, meaning])
  return table(['code', 'what it refuses'], rows)
}

/** From the source: what an exit code means stands in its comment. */
function exitCodes() {
  const source = readFileSync(join(root, 'src', 'cli', 'exit.ts'), 'utf8')
  const rows = [...source.matchAll(/\/\*\* ([^*]+?) \*\/\n\s+(\w+): (\d+),/g)].map(([, meaning, , code]) => [code, meaning])
  if (rows.length === 0) throw new Error('no exit codes found in src/cli/exit.ts')
  return table(['exit code', 'meaning'], rows)
}

function commands() {
  return leaves([])
    .map((words) => `### sion ${words.join(' ')}\n\n\`\`\`text\n${help(words)}\n\`\`\``)
    .join('\n\n')
}

/** The commands that do something, in the order of the help. */
function leaves(words) {
  const [, list] = help(words).split('\nCommands:\n')
  if (list === undefined) return [words]
  const names = [...list.matchAll(/^ {2}(\w[\w-]*)/gm)].map(([, name]) => name)
  return names.filter((name) => name !== 'help').flatMap((name) => leaves([...words, name]))
}

function help(words) {
  const env = { PATH: process.env.PATH, NO_COLOR: '1' }
  return execFileSync(process.execPath, [join(root, 'dist', 'cli', 'main.js'), ...words, '--help'], { encoding: 'utf8', env }).trim()
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}
