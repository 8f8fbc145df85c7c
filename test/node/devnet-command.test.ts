import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Store } from '../../src/node/store.js'
import { networkOf } from '../../src/pulse/index.js'
import { DevnetProcess } from './devnet-process.js'

let parent: string
const processes: DevnetProcess[] = []

beforeAll(() => {
  parent = mkdtempSync(join(tmpdir(), 'sion-devnet-test-'))
})

afterEach(async () => {
  for (const running of processes.splice(0)) await running.end('SIGKILL')
})

afterAll(() => rmSync(parent, { recursive: true }))

function devnet(...args: string[]): DevnetProcess {
  const running = new DevnetProcess(args)
  processes.push(running)
  return running
}

describe('sion devnet', () => {
  it('says what to pin and what to try next, and ends cleanly on Ctrl-C, leaving nothing', async () => {
    const before = new Set(readdirSync(tmpdir()))
    const running = devnet('--listen', '127.0.0.1:0')
    const api = await running.api()
    expect((await api.status()).chain).toBe(api.chain)
    const { code, stdout, stderr } = await running.end('SIGINT')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout.split('\n')).toEqual([
      'devnet of 4 validators, gone at the end; Ctrl-C ends it',
      `  chain    ${api.chain}`,
      `  network  ${networkOf(api.chain)}`,
      `  API      ${api.url}`,
      'Next, in another terminal:',
      `  export SION_CHAIN=${api.chain}`,
      `  sion faucet dana 10 --node ${api.url}`,
      '',
    ])
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('sion-devnet-') && !name.startsWith('sion-devnet-test-') && !before.has(name))).toEqual([])
  })

  it('is the same chain in the same folder, which only one process has at a time', async () => {
    const folder = join(parent, 'chain')
    const first = devnet('--data', folder, '--listen', '127.0.0.1:0', '--validators', '3')
    const { chain } = await first.api()
    expect(() => Store.open(folder)).toThrow(expect.objectContaining({ code: 'data_folder_in_use' }))
    const second = await devnet('--data', folder, '--listen', '127.0.0.1:0').ended
    expect(second).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(new RegExp(`^error: the data folder .* is in use by process ${first.pid}: .*\n$`)) })
    await first.end('SIGTERM')
    const other = await devnet('--data', folder, '--listen', '127.0.0.1:0', '--validators', '4').ended
    expect(other).toMatchObject({ code: 2, stderr: 'error: --validators: the chain in this data folder has 3 validators, not 4\n' })
    expect((await devnet('--data', folder, '--listen', '127.0.0.1:0').api()).chain).toBe(chain)
  })

  it('halts from the start if told to, and says so', async () => {
    const running = devnet('--listen', '127.0.0.1:0', '--stop-validator', '1', '--stop-validator', '3')
    expect(await (await running.api()).status()).toMatchObject({ active: false, active_validators: 2 })
    expect((await running.end('SIGTERM')).stderr).toMatch(/warning: the chain is halted: too few validators run\n/)
  })

  it('says in one line that its port is taken, and leaves the data folder free', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const folder = join(parent, 'taken')
    const { code, stdout, stderr } = await devnet('--data', folder, '--listen', `127.0.0.1:${port}`).ended
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: `error: 127.0.0.1:${port} is in use: is another node running there?\n` })
    await Store.open(folder).close()
    await new Promise((resolve) => server.close(resolve))
  })

  it.each([
    [['--listen', '8730'], /^error: --listen: expected host:port/],
    [['--listen', '127.0.0.1:65536'], /^error: --listen: /],
    [['--listen', '::1:8730'], /^error: --listen: /],
    [['--validators', '0'], /^error: --validators: expected a whole number from 1 to 32, not 0/],
    [['--validators', '33'], /^error: --validators: /],
    [['--validators', '1e1'], /^error: --validators: /],
    [['--stop-validator', '-1'], /^error: --stop-validator: /],
    [['--stop-validator', '4', '--listen', '127.0.0.1:0'], /^error: --stop-validator: validators are numbered 0 to 3, and there is no 4/],
    [['--data', ''], /^error: --data: /],
    [['--verbose'], /^error: unknown option '--verbose'/],
  ])('%j is one line that names the flag, and exit code 2', async (args, line) => {
    const { code, stdout, stderr } = await devnet(...args).ended
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(line)
    expect(stderr.split('\n')).toHaveLength(2)
  })
})
