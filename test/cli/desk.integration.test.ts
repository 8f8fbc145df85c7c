import { mkdirSync } from 'node:fs'
import { Redis } from 'ioredis'
import { open } from 'lmdb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromHex } from '../../src/codec/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { devnetWallet, transact, type Ledger, type Wallet } from '../../src/sdk/index.js'
import type { PaymentRequirements } from '../../src/x402/wire.js'
import { Cli, type RunningCli } from '../support/cli.js'
import { fund, fundedWallet, HttpClient, ledgerAt, PaidStream, payOnce, streamTermsOf } from '../support/paid-stream.js'
import { startRedis, type RedisServer } from '../support/redis.js'

/** `sion desk` beside the server whose desk it is, on each store; and stores that a server cannot use. */

let node: DevnetNode
let ledger: Ledger
let cli: Cli
let payer: Wallet
let redis: RedisServer
const shops: RunningCli[] = []
const client = new HttpClient()

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 20_000 })
  ledger = ledgerAt(node.url, node.chain)
  cli = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
  payer = await fundedWallet(ledger)
  redis = await startRedis()
})
afterAll(async () => {
  client.close()
  for (const shop of shops) shop.kill('SIGKILL')
  await redis?.stop()
  await cli?.remove()
  await node?.stop()
})

interface Shop {
  readonly running: RunningCli
  readonly url: string
  readonly terms: PaymentRequirements
}

async function serve(name: string, ...args: string[]): Promise<Shop> {
  await fund(ledger, devnetWallet(name).account, 1_000_000n)
  const running = cli.start('x402', 'serve', name, '--streams', '--price', '0.001', '--listen', '127.0.0.1:0', '--settle-after', '3600', ...args)
  shops.push(running)
  const [, url = ''] = await running.until(/^selling (\S+) at /m)
  return { running, url, terms: await streamTermsOf(client, url) }
}

async function pay({ url, terms }: Shop, stream: PaidStream, upTo: number): Promise<void> {
  for (let position = 1; position <= upTo; position++) {
    expect((await payOnce(client, url, terms, stream.payload(position))).status).toBe(200)
    stream.accepted(position)
  }
}

const stores = [
  { store: 'a folder in SION_HOME', name: 'carol', flags: () => [] },
  { store: 'Redis', name: 'erin', flags: () => ['--redis', redis.url] },
]

describe.each(stores)('sion desk on $store, while its server runs', ({ name, flags }) => {
  it('shows what is unsettled, exports what would settle it, and settles it', async () => {
    const shop = await serve(name, ...flags())
    const payee = devnetWallet(name).account
    const [one, two] = await Promise.all([PaidStream.open(ledger, payer, { payee }), PaidStream.open(ledger, payer, { payee, step: 500n })])
    expect((await cli.run('desk', 'status', name, ...flags())).stdout).toBe('0 streams, 0 USD unsettled\n')
    await pay(shop, one, 70)
    for (const position of [2, 4]) expect((await payOnce(client, shop.url, shop.terms, two.payload(position))).status).toBe(200)

    const status = await cli.run('desk', 'status', name, ...flags())
    expect([status.code, status.stdout.split('\n').sort()]).toEqual([
      0,
      [
        '',
        '2 streams, 0.072 USD unsettled',
        expect.stringMatching(/^stream [0-9a-f]{64} {2}sold (70|4) {2}settled 0 {2}unsettled (70 \(0\.07|4 \(0\.002) USD\)/),
        expect.stringMatching(/^stream [0-9a-f]{64} {2}sold (70|4) {2}settled 0 {2}unsettled (70 \(0\.07|4 \(0\.002) USD\)/),
      ].sort((a, b) => (String(a) < String(b) ? -1 : 1)),
    ])
    const json = JSON.parse((await cli.run('desk', 'status', name, ...flags(), '--json')).stdout)
    expect(json.unsettledUsd).toBe('0.072')
    expect(json.streams.find(({ stream }: { stream: string }) => stream === one.id)).toMatchObject({ sold: 70, settled: 0, unsettled: 70, tip: 70, closing: false, unsettledUsd: '0.07' })

    // Whoever has what is exported can settle: here the payer itself, who only has an interest in not doing so.
    const { claims } = JSON.parse((await cli.run('desk', 'export', name, ...flags())).stdout) as { claims: Exported[] }
    const mine = claims.filter(({ stream }) => stream === one.id)
    expect(mine[0]?.jump?.index).toBe(1)
    // The last step may be in flight as far as the store knows: that it was answered is written with the next.
    expect([69, 70]).toContain(mine[0]?.position)
    expect((await transact(ledger, payer, { kind: 'settleStreams', claims: mine.map(decoded) })).kind).toBe('settled')
    expect(await one.settled()).toBe(mine[0]?.position)

    // The desk learns of it, and settles the rest.
    const settled = await cli.run('desk', 'settle', name, ...flags())
    expect([settled.code, settled.stderr.replace(/^settled .*\n/gm, '')]).toEqual([0, ''])
    expect(settled.stdout).toMatch(/^settled [45] steps of \d streams in \d transactions\n$/)
    expect([await one.settled(), await two.settled()]).toEqual([70, 4])
    expect((await cli.run('desk', 'status', name, ...flags())).stdout).toContain('2 streams, 0 USD unsettled\n')
    expect((await cli.run('desk', 'settle', name, ...flags())).stdout).toBe('settled 0 steps of 0 streams in 0 transactions\n')

    // Its server goes on from there, and has what it sold since to settle.
    expect((await payOnce(client, shop.url, shop.terms, one.payload(71))).status).toBe(200)
    expect((await cli.run('desk', 'settle', name, two.id, ...flags())).stdout).toBe('settled 0 steps of 0 streams in 0 transactions\n')
    shop.running.kill('SIGINT')
    expect((await shop.running.result).code).toBe(0)
    expect(await one.settled()).toBe(71)
  })
})

interface Exported {
  stream: string
  position: number
  element: string
  jump?: { index: number; path: string[] }
}

function decoded({ stream, position, element, jump }: Exported): { stream: string; position: number; element: Uint8Array; jump?: { index: number; path: Uint8Array[] } } {
  return {
    stream,
    position,
    element: fromHex(element, 'element', 32),
    ...(jump === undefined ? {} : { jump: { index: jump.index, path: jump.path.map((node) => fromHex(node, 'node', 32)) } }),
  }
}

describe('sion desk', () => {
  it('says that a folder has no desk, and of a stream that it does not know', async () => {
    const nowhere = await cli.run('desk', 'status', 'bob', '--data', `${cli.home}/nowhere`)
    expect([nowhere.code, nowhere.stderr]).toEqual([2, `error: --data: no server has sold streams of bob from "${cli.home}/nowhere"\n`])
    const unknown = await cli.run('desk', 'settle', 'erin', 'ab'.repeat(32), '--redis', redis.url)
    expect([unknown.code, unknown.stderr]).toEqual([4, expect.stringMatching(/^error: 1 streams were not settled; abababab: the ledger has no stream/)])
    expect((await cli.run('desk', 'settle', 'erin', 'ab', '--redis', redis.url)).code).toBe(2)
  })
})

describe('a store that a server cannot use', () => {
  const serveOnce = (name: string, ...flags: string[]): ReturnType<Cli['run']> =>
    cli.run('x402', 'serve', name, '--streams', '--listen', '127.0.0.1:0', ...flags)
  const facilitateOnce = (...flags: string[]): ReturnType<Cli['run']> => cli.run('facilitator', '--streams', 'bob', '--listen', '127.0.0.1:0', ...flags)

  it('is of a newer format: the server does not start, and says what to do', async () => {
    const folder = `${cli.home}/newer`
    mkdirSync(`${folder}/streams`, { recursive: true })
    const tabs = open<Uint8Array, Uint8Array>({ path: `${folder}/streams`, noSubdir: false, encoding: 'binary', keyEncoding: 'binary', maxDbs: 8 })
    tabs.putSync(new TextEncoder().encode('format'), Uint8Array.of(9))
    await tabs.close()
    const refused = /^error: the desk's store has format 9, and this program knows up to \d: upgrade this program\n$/m
    for (const command of [serveOnce('bob', '--data', folder), facilitateOnce('--data', folder)]) {
      const { code, stdout, stderr } = await command
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(refused)])
    }
    expect((await cli.run('desk', 'status', 'bob', '--data', folder)).stderr).toMatch(refused)

    const newer = await startRedis()
    const writer = new Redis(newer.url)
    const name = `${devnetWallet('bob').account.slice(0, 16)}-${node.chain.slice(0, 16)}`
    await writer.mset(`sion:desk:${name}:format`, '9', `sion:desk:facilitator-${node.chain.slice(0, 16)}:format`, '9')
    writer.disconnect()
    for (const command of [serveOnce('bob', '--redis', newer.url), facilitateOnce('--redis', newer.url)]) {
      const { code, stdout, stderr } = await command
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(refused)])
    }
    await newer.stop()
  })

  it('is away at the start: the server says so and ends', async () => {
    for (const command of [serveOnce('bob', '--redis', 'redis://127.0.0.1:1'), facilitateOnce('--redis', 'redis://127.0.0.1:1')]) {
      const { code, stdout, stderr } = await command
      expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(/^error: .*out of reach/m)])
    }
  })

  it('goes away: 503 and nothing is accepted, least of all from memory, until it is back with what it had', async () => {
    const lasting = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
    const shop = await serve('frank', '--redis', lasting.url)
    const stream = await PaidStream.open(ledger, payer, { payee: devnetWallet('frank').account })
    const other = await PaidStream.open(ledger, payer, { payee: devnetWallet('frank').account })
    await pay(shop, stream, 3)
    await lasting.kill()
    for (const [from, position] of [[stream, 4], [stream, 4], [other, 1]] as const) {
      const away = await payOnce(client, shop.url, shop.terms, from.payload(position))
      expect([away.status, away.headers['retry-after'], JSON.parse(away.body).code]).toEqual([503, '2', 'store_unavailable'])
    }
    await lasting.restart()
    let answer = await payOnce(client, shop.url, shop.terms, stream.payload(4))
    // Connects again by itself, within a second.
    while (answer.status === 503) answer = await payOnce(client, shop.url, shop.terms, stream.payload(4))
    expect(answer.status).toBe(200)
    expect((await payOnce(client, shop.url, shop.terms, stream.payload(3))).code).toBe('wrong_position')
    expect((await payOnce(client, shop.url, shop.terms, other.payload(1))).status).toBe(200)
    shop.running.kill('SIGINT')
    expect((await shop.running.result).code).toBe(0)
    expect([await stream.settled(), await other.settled()]).toEqual([4, 1])
    await lasting.stop()
  })
})
