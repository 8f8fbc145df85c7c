import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { Cli, type RunningCli } from '../support/cli.js'

const example = fileURLToPath(new URL('../../examples/stream-buyer/index.mjs', import.meta.url))

let node: DevnetNode
let cli: Cli
beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 5_000 })
  cli = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
  await Promise.all([cli.run('faucet', 'alice', '10'), cli.run('faucet', 'bob', '1'), cli.run('faucet', 'carol', '1')])
})
afterAll(async () => {
  await cli.remove()
  await node.stop()
})

async function serve(payee: string, ...flags: string[]): Promise<{ url: string; running: RunningCli }> {
  const running = cli.start('x402', 'serve', payee, '--streams', '--price', '0.001', '--listen', '127.0.0.1:0', ...flags)
  const [, url = ''] = await running.until(/selling (http:\S+) at/)
  return { url, running }
}

async function run(url: string): Promise<{ code: unknown; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [example, url], {
    env: { PATH: process.env['PATH'], SION_HOME: join(cli.home, 'buyer'), SION_NODE: node.url, SION_CHAIN: node.chain },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, stdout, stderr }
}

describe('examples/stream-buyer', () => {
  for (const [payee, flags] of [['bob', []], ['carol', ['--window', '64']]] as const) {
    it(`has a hundred calls served at once, ${flags.length === 0 ? 'in order' : 'within a window'}, and goes on with its stream the next time`, async () => {
      const { url, running } = await serve(payee, ...flags)
      try {
        const first = await run(url)
        expect(first).toMatchObject({ code: 0, stderr: '' })
        expect(first.stdout).toMatch(/^alice signs: Open a stream to [0-9a-f]{8}: 10,000 steps of 0\.001 USD, 0\.5 USD in escrow .*\n100 of 100 calls served in [0-9.]+ s, 0\.1 USD, up to position 100\n$/)
        const second = await run(url)
        expect(second).toMatchObject({ code: 0, stderr: '' })
        expect(second.stdout).toMatch(/^100 of 100 calls served in [0-9.]+ s, 0\.1 USD, up to position 200\n$/)
      } finally {
        running.kill('SIGTERM')
        await running.result
      }
    })
  }
})
