/**
 * Requests per second of one route, unpriced and paid from streams, over Express and Hono, with tabs in memory, in Redis
 * and in a folder: one server process, the load in another, the variants in turn within one run. `npm run bench:stream`
 * runs it with the rest; alone: `node scripts/bench.mjs bench/stream-http.ts [seconds a round] [rounds]`.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import type { DeskStore } from '../src/desk/index.js'
import { paywall as expressPaywall } from '../src/express/index.js'
import { paywall as honoPaywall } from '../src/hono/node.js'
import { streamId } from '../src/ledger/index.js'
import { createLightClient, httpTransport } from '../src/light/index.js'
import { startNode, type DevnetNode } from '../src/node/index.js'
import { createNodeClient, devnetWallet, transact, type Ledger } from '../src/sdk/index.js'
import { PayerChain } from '../src/sdk/streams/payer-chain.js'
import { embeddedDeskStore, memoryDeskStore, memoryNonceStore, redisDeskStore } from '../src/x402/stores/index.js'
import { streamRequirements } from '../src/x402/stream/terms.js'
import { startRedis } from '../test/support/redis.js'
import { LOAD_VARIABLE, serveLoads, startLoader, type LoadStream } from './support/http-load.js'

const CONNECTIONS = 32
const LENGTH = 200_000
const PRICE = '0.001'
const AMOUNT = 1_000n

export interface HttpRow {
  readonly framework: 'Express' | 'Hono'
  readonly variant: string
  readonly requestsPerSecond: number
  /** Of the unpriced route of the same framework: the median of each round's ratio. */
  readonly ratio: number
  /** Of the server's process, microseconds for each request. */
  readonly cpuMicroseconds: number
  readonly headerBytes: number
}

interface Variant {
  readonly framework: 'Express' | 'Hono'
  readonly name: string
  readonly port: number
  readonly streams: LoadStream[]
  readonly rates: number[]
  readonly cpu: number[]
  headerBytes: number
}

export async function benchHttp(seconds: number, rounds: number, say: (line: string) => void): Promise<HttpRow[]> {
  // No Pulse by itself: the ledger's signing would compete with what is measured.
  const node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 3_600_000 })
  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec'])
  const folder = mkdtempSync(join(tmpdir(), 'sion-bench-'))
  const loader = startLoader()
  const ends: (() => Promise<void>)[] = []
  try {
    const { chain, open } = await payer(node, say)
    const requirements = streamRequirements({ chain, payee: devnetWallet('bob').account, amount: AMOUNT, margin: 10, window: 0 })
    const variants: Variant[] = []
    for (const framework of ['Express', 'Hono'] as const) {
      variants.push(await serveVariant(framework, 'unpriced', undefined, node, [], ends))
      for (const [name, store] of stores(redis.url, join(folder, framework), framework)) {
        variants.push(await serveVariant(framework, name, store, node, await open(CONNECTIONS), ends))
      }
    }
    for (let round = -1; round < rounds; round++) {
      for (const variant of variants) {
        const { port, streams } = variant
        const before = process.cpuUsage()
        const result = await loader.run({ port, path: '/paid', milliseconds: round < 0 ? 1_000 : seconds * 1_000, streams, connections: CONNECTIONS, requirements })
        for (const [i, next] of result.next.entries()) streams[i] = { ...streams[i]!, next }
        const bad = Object.keys(result.statuses).filter((status) => status !== '200')
        if (bad.length > 0) throw new Error(`${variant.framework} ${variant.name}: ${JSON.stringify(result.statuses)}`)
        // The first round warms up and is not counted.
        if (round < 0) continue
        variant.rates.push((result.answered / result.milliseconds) * 1_000)
        const { user, system } = process.cpuUsage(before)
        variant.cpu.push((user + system) / result.answered)
        variant.headerBytes = result.headerBytes
        say(`${variant.framework} ${variant.name}: ${Math.round(variant.rates.at(-1)!)} requests/s, ${Math.round(variant.cpu.at(-1)!)} µs of CPU each`)
      }
    }
    return variants.map((variant) => row(variant, variants))
  } finally {
    loader.stop()
    for (const end of ends.reverse()) await end()
    await redis.stop()
    await node.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

function row({ framework, name, rates, cpu, headerBytes }: Variant, variants: readonly Variant[]): HttpRow {
  const unpriced = variants.find((other) => other.framework === framework && other.name === 'unpriced')
  const ratios = rates.map((rate, i) => rate / (unpriced?.rates[i] ?? rate))
  return { framework, variant: name, requestsPerSecond: median(rates), ratio: median(ratios), cpuMicroseconds: Math.round(median(cpu)), headerBytes }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

function* stores(redisUrl: string, folder: string, name: string): Generator<[string, DeskStore]> {
  yield ['memory', memoryDeskStore()]
  yield ['Redis', redisDeskStore({ url: redisUrl, prefix: `bench:${name}` })]
  yield ['folder', embeddedDeskStore(folder)]
}

/** Someone with streams to bob, opened for real. */
async function payer(node: DevnetNode, say: (line: string) => void): Promise<{ chain: string; open(count: number): Promise<LoadStream[]> }> {
  const transport = httpTransport(node.url)
  const ledger: Ledger = { client: createLightClient({ transport, chain: node.chain, maxAgeMs: Infinity }), node: createNodeClient(transport) }
  const dana = devnetWallet('dana')
  for (const name of ['dana', 'bob']) {
    const { account } = devnetWallet(name)
    const submitted = await ledger.node.faucet(account, 500_000_000_000n)
    if (submitted.kind !== 'submitted') throw new Error(`the faucet answered ${submitted.kind}`)
    await ledger.client.receipt(submitted.digest, { waitSeconds: 30 })
  }
  return {
    chain: node.chain,
    async open(count) {
      say(`opening ${count} streams`)
      return Promise.all(
        Array.from({ length: count }, async () => {
          const seed = new Uint8Array(randomBytes(32))
          const salt = new Uint8Array(randomBytes(16))
          const chain = await PayerChain.build({ seed, salt, length: LENGTH })
          const outcome = await transact(ledger, dana, {
            kind: 'openStream',
            payee: devnetWallet('bob').account,
            anchor: chain.anchor,
            salt,
            checkpointRoot: chain.checkpointRoot,
            length: LENGTH,
            stepValue: AMOUNT,
            escrow: AMOUNT * BigInt(LENGTH),
            lastPulse: 1_000_000,
          })
          if (outcome.kind !== 'settled') throw new Error(`a stream was not opened: ${outcome.kind}`)
          return { stream: streamId(outcome.digest), seed: Buffer.from(seed).toString('hex'), salt: Buffer.from(salt).toString('hex'), length: LENGTH, next: 1 }
        }),
      )
    },
  }
}

async function serveVariant(
  framework: 'Express' | 'Hono',
  name: string,
  store: DeskStore | undefined,
  node: DevnetNode,
  streams: LoadStream[],
  ends: (() => Promise<void>)[],
): Promise<Variant> {
  const seller =
    store === undefined
      ? undefined
      : {
          payTo: devnetWallet('bob').account,
          chain: node.chain,
          node: node.url,
          store: memoryNonceStore(),
          streams: { wallet: devnetWallet('bob'), store, settleEvery: 1_000_000_000, settleAfterSeconds: 86_400 },
        }
  const server = framework === 'Express' ? expressServer(seller, ends) : honoServer(seller, ends)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return { framework, name, port: (server.address() as AddressInfo).port, streams, rates: [], cpu: [], headerBytes: 0 }
}

type SellerOptions = Parameters<typeof expressPaywall>[0]

function expressServer(seller: SellerOptions | undefined, ends: (() => Promise<void>)[]): Server {
  const app = express()
  const answer: express.RequestHandler = (_, response) => void response.json({ gpu_hour_usd: 1.95 })
  if (seller === undefined) app.get('/paid', answer)
  else {
    const charge = expressPaywall(seller)
    ends.push(() => charge.close())
    app.get('/paid', charge(PRICE), answer)
  }
  return createServer(app)
}

function honoServer(seller: SellerOptions | undefined, ends: (() => Promise<void>)[]): Server {
  const app = new Hono()
  if (seller === undefined) app.get('/paid', (c) => c.json({ gpu_hour_usd: 1.95 }))
  else {
    const charge = honoPaywall(seller)
    ends.push(() => charge.close())
    app.get('/paid', charge(PRICE), (c) => c.json({ gpu_hour_usd: 1.95 }))
  }
  return createServer(getRequestListener(app.fetch))
}

// Not when bench/stream.ts has imported it.
if (process.argv[1]?.includes('stream-http') === true) {
  if (process.env[LOAD_VARIABLE] !== undefined) serveLoads()
  else await alone()
}

async function alone(): Promise<void> {
  const [seconds = '3', rounds = '5'] = process.argv.slice(2)
  const rows = await benchHttp(Number(seconds), Number(rounds), (line) => process.stderr.write(`${line}\n`))
  console.table(rows.map((entry) => ({ ...entry, requestsPerSecond: Math.round(entry.requestsPerSecond), ratio: Number(entry.ratio.toFixed(2)) })))
}
