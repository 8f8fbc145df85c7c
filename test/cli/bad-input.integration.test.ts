import { spawn } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Cli } from '../support/cli.js'

/** Whatever is typed: one line that names the thing, exit code 2, and nothing is asked of a node (there is none). */

let cli: Cli
let nowhere: string
beforeAll(async () => {
  nowhere = `http://127.0.0.1:${await freePort()}`
  cli = await Cli.create({ SION_NODE: nowhere })
})
afterAll(() => cli.remove())

const id = 'ab'.repeat(32)

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}

const inputs: [args: string[], message: string | RegExp][] = [
  [['pay'], "missing required argument 'from'"],
  [['pay', 'dana', 'bob'], "missing required argument 'amount'"],
  [['pay', 'dana', 'bob', '1', '2'], /too many arguments for 'pay'/],
  [['pay', 'dana', 'bob', '-1'], 'amount: expected USD in decimal, such as 0.25, not "-1"'],
  [['pay', 'dana', 'bob', '-0.5'], 'amount: expected USD in decimal, such as 0.25, not "-0.5"'],
  [['pay', 'dana', 'bob', '0'], 'amount: expected more than 0 USD'],
  [['pay', 'dana', 'bob', '0.0000001'], 'amount: "0.0000001" has 7 decimals; USD has at most 6'],
  [['pay', 'dana', 'bob', '1e3'], /^amount: .*"1e3"/],
  [['pay', 'dana', 'bob', '1abc'], /^amount: .*"1abc"/],
  [['pay', 'dana', 'bob', 'NaN'], /^amount: .*"NaN"/],
  [['pay', 'dana', 'bob', '.5'], /^amount: .*"\.5"/],
  [['pay', 'dana', 'bob', '1,5'], /^amount: .*"1,5"/],
  [['pay', 'dana', 'bob', ''], /^amount: .*""/],
  [['pay', 'dana', 'bob', ' 1'], /^amount: .*" 1"/],
  [['pay', 'dana', 'bob', '9'.repeat(30)], /^amount: .*more than the largest amount/],
  [['pay', 'dana', 'bob', '9007199254.740992'], /^amount: .*more than the largest amount, 9007199254\.740991/],
  [['pay', '../dana', 'bob', '1'], /^from: "\.\.\/dana" is no wallet name/],
  [['pay', '', 'bob', '1'], /^from: "" is no wallet name/],
  [['pay', id, 'bob', '1'], /^from: .*reads like an account id/],
  [['pay', 'dana', 'b b', '1'], /^to: "b b" is no wallet name/],
  [['pay', 'dana', id.slice(1), '1'], /^to: .*reads like an account id/],
  [['pay', 'dana', id.toUpperCase(), '1'], /^to: .*lower-case/],
  [['pay', 'dana', 'bob', '1', '--purpose', 'x'.repeat(121)], '--purpose: 121 bytes; at most 120'],
  [['pay', 'dana', 'bob', '1', '--purpose', 'a\nb'], /^--purpose: .*control character/],
  [['pay', 'dana', 'bob', '1', '--purpose'], /--purpose <text>/],
  [['pay', 'dana', 'bob', '1', '--frm', 'x'], /unknown option '--frm'/],
  [['pay', 'dana', 'bob', '1', '--chain', 'abc'], '--chain: expected an id of 64 lower-case hex digits, not "abc"'],
  [['pay', 'dana', 'bob', '1', '--node', 'localhost:8730'], '--node: expected an http:// or https:// URL, not "localhost:8730"'],
  [['pay', 'dana', 'bob', '1', '--node', 'http://'], /^--node: expected/],
  [['pay', 'dana', 'bob', '1', '--node', 'http://x/?a=1'], /^--node: /],
  [['status', '--node', 'http://me:secret@127.0.0.1/'], /^--node: /],
  [['faucet', 'dana'], "missing required argument 'amount'"],
  [['faucet', 'dana', 'ten'], /^amount: .*"ten"/],
  [['faucet', '.', '1'], /^name: "\." is no wallet name/],
  [['balance'], "missing required argument 'name'"],
  [['balance', 'a/b'], /^name: "a\/b" is no wallet name/],
  [['receipt', 'abc'], 'digest: expected an id of 64 lower-case hex digits, not "abc"'],
  [['receipt', id.toUpperCase()], /^digest: expected an id of 64 lower-case hex digits/],
  [['receipt', id, '--wait', '-1'], /^--wait: expected whole seconds from 0 to 600, not "-1"/],
  [['receipt', id, '--wait', '601'], /^--wait: .*"601"/],
  [['receipt', id, '--wait', '1.5'], /^--wait: .*"1\.5"/],
  [['wallet', 'new'], "missing required argument 'name'"],
  [['wallet', 'new', '../x'], /^wallet: "\.\.\/x" is no wallet name/],
  [['wallet', 'new', id], /^wallet: .*reads like an account id/],
  [['wallet', 'show', 'x'.repeat(65)], /^wallet: .* is no wallet name/],
  [['wallet', 'dual', '-x'], /unknown option '-x'/],
  [['wallet', 'dual', 'a b'], /^name: "a b" is no wallet name/],
  [['wallet', 'frob'], /unknown command 'frob'/],
  [['frobnicate'], /unknown command 'frobnicate'/],
  [['pya'], "unknown command 'pya' (Did you mean pay?)"],
  [['--frob'], /unknown option '--frob'/],
]

describe('bad input', () => {
  it.each(inputs)('sion %j', async (args, message) => {
    const { code, stdout, stderr } = await cli.run(...args)
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toMatch(/^error: [^\n]+\n$/)
    const said = stderr.slice('error: '.length, -1)
    if (typeof message === 'string') expect(said).toBe(message)
    else expect(said).toMatch(message)
    expect(stderr).not.toContain('secret')
    expect(await readdir(cli.home)).toEqual([])
  })

  it('in a variable is named as the variable', async () => {
    expect(await cli.with({ SION_NODE: 'x' }).run('status')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: SION_NODE: /) })
    expect(await cli.with({ SION_CHAIN: 'x' }).run('status')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: SION_CHAIN: /) })
  })

  it('an empty variable is none, and a flag wins over one', async () => {
    const empty = await cli.with({ SION_CHAIN: '' }).run('status')
    expect(empty).toMatchObject({ code: 1, stderr: expect.stringContaining(`cannot reach the node at ${nowhere}/`) })
    expect(await cli.with({ SION_CHAIN: 'x' }).run('status', '--chain', id)).toMatchObject({ code: 1 })
  })
})

describe('a node that is not there', () => {
  it.each([['status'], ['balance', 'dana'], ['pay', 'dana', 'bob', '1'], ['faucet', 'dana', '1'], ['receipt', id], ['wallet', 'dual', 'dana']])(
    'is one line and exit 1: sion %s',
    async (...args) => {
      const { code, stdout, stderr } = await cli.run(...args)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^error: cannot reach the node at http:\/\/127\.0\.0\.1:\d+\S* \(ECONNREFUSED\)[^\n]*\n$/)
    },
  )

  it('shows where it was found out only if asked', async () => {
    const { stderr } = await cli.with({ SION_DEBUG: '1' }).run('status')
    expect(stderr).toMatch(/\n {4}at /)
  })
})

describe('sion itself', () => {
  it('says its version and its help on stdout', async () => {
    expect(await cli.run('--version')).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/), stderr: '' })
    expect(await cli.run('--help')).toMatchObject({ code: 0, stdout: expect.stringContaining('faucet'), stderr: '' })
    expect(await cli.run('pay', '--help')).toMatchObject({ code: 0, stdout: expect.stringMatching(/env:\s+SION_NODE/), stderr: '' })
    expect(await cli.run('help', 'wallet', 'new')).toMatchObject({ code: 0 })
  })

  it('alone shows its help on stderr and exits 2', async () => {
    expect(await cli.run()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Usage: sion') })
  })

  it('ends as it would have when nobody reads its output any more', async () => {
    const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
    const child = spawn(process.execPath, [main, 'wallet', 'new', 'dana'], { env: { SION_HOME: cli.home }, stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.destroy()
    let stderr = ''
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect([code, stderr]).toEqual([0, ''])
  })
})
