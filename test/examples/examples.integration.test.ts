import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { payingFetch, settlementOf, type PayingFetch } from '../../src/fetch/index.js'
import { createLightClient, httpTransport } from '../../src/light/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { createNodeClient, devnetWallet, waitForReceipt } from '../../src/sdk/index.js'
import { decodePaymentRequired, PAYMENT_REQUIRED } from '../../src/x402/headers.js'

const examples = fileURLToPath(new URL('../../examples/', import.meta.url))

let node: DevnetNode
let folder: string
const buyer = devnetWallet('dana')
const seller = devnetWallet('carol')

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sion-examples-'))
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 } })
  const funded = await createNodeClient(httpTransport(node.url)).faucet(buyer.account, 100_000_000n)
  if (funded.kind !== 'submitted') throw new Error(funded.reason)
  await waitForReceipt(createLightClient({ transport: httpTransport(node.url), chain: node.chain }), funded.digest)
})
afterAll(async () => {
  await node.stop()
  await rm(folder, { recursive: true, force: true })
})

/** An example as a process of its own, in an empty folder, with what its first comment says it needs. */
function start(example: string, args: string[], env: Record<string, string> = {}): ChildProcess & { stdout: NodeJS.ReadableStream } {
  const child = spawn(process.execPath, [join(examples, example, 'index.mjs'), ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'], SION_HOME: join(folder, 'home'), SION_NODE: node.url, SION_CHAIN: node.chain, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return child
}

async function run(example: string, args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = start(example, args)
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code, stdout, stderr }
}

async function text(stream: NodeJS.ReadableStream | null): Promise<string> {
  let all = ''
  for await (const chunk of stream ?? []) all += chunk.toString()
  return all
}

describe.each(['express-seller', 'hono-seller'])('examples/%s', (example) => {
  let server: ReturnType<typeof start>
  let origin: string
  let pay: PayingFetch

  beforeAll(async () => {
    server = start(example, [], { PAY_TO: seller.account, PORT: '0', DATA: example })
    server.stderr?.pipe(process.stderr)
    const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string]
    origin = /^selling at (http:\/\/127\.0\.0\.1:[0-9]+)$/.exec(line)?.[1] ?? line
    pay = payingFetch({ wallet: buyer, node: node.url, chain: node.chain })
  })
  afterAll(async () => {
    server.kill('SIGTERM')
    const [code] = await once(server, 'close')
    expect(code).toBe(0)
  })

  /** Buys a path: what came, and what it cost in micro-USD. */
  async function buy(path: string): Promise<{ body: string; cost: bigint; type: string | null }> {
    const before = pay.spent()
    const response = await pay(origin + path)
    expect(response.status).toBe(200)
    const cost = pay.spent() - before
    expect(settlementOf(response)?.success).toBe(cost > 0n ? true : undefined)
    return { body: await response.text(), cost, type: response.headers.get('content-type') }
  }

  it('sells at a fixed price', async () => {
    expect(await buy('/report')).toMatchObject({ body: '{"report":"sunny"}', cost: 250_000n })
  })

  it('sells at a price computed from the request, which buys nothing else', async () => {
    expect(await buy('/shout?text=hello')).toMatchObject({ body: '{"shouted":"HELLO"}', cost: 5_000n })
    expect((await fetch(`${origin}/shout`)).status).toBe(400)
  })

  it('gives the free case away and describes the rest', async () => {
    expect(await buy('/table?rows=1')).toMatchObject({ body: 'day,high\nMon,21\n', cost: 0n })
    const unpaid = await fetch(`${origin}/table`)
    expect(unpaid.status).toBe(402)
    const { resource } = decodePaymentRequired(unpaid.headers.get(PAYMENT_REQUIRED) ?? '')
    expect(resource).toEqual({ url: '/table', description: 'all rows; ?rows=1 is free', mimeType: 'text/csv' })
    expect(await buy('/table')).toMatchObject({ cost: 50_000n, type: expect.stringMatching(/^text\/csv/) })
  })

  it('refuses what it does not have before it asks for money', async () => {
    expect((await fetch(`${origin}/weather/atlantis`)).status).toBe(404)
    expect(await buy('/weather/oslo')).toMatchObject({ body: '{"celsius":4}', cost: 10_000n })
  })

  it('sells a whole router', async () => {
    expect((await fetch(`${origin}/archive/1999`)).status).toBe(402)
    expect(await buy('/archive/1999')).toMatchObject({ body: '{"year":"1999","days":365}', cost: 20_000n })
  })

  it('sells to examples/buyer', async () => {
    const bought = await run('buyer', [`${origin}/weather/oslo`])
    expect(bought).toMatchObject({ code: 0, stdout: '{"celsius":4}\n' })
    expect(bought.stderr).toMatch(/^\/weather\/oslo, 0\.01 USD per request: 0\.01 USD\npaid with transaction [0-9a-f]{64}\n$/)
  })
})

describe('examples/buyer', () => {
  it('tells a refusal to pay apart from an answer', async () => {
    const dear = start('express-seller', [], { PAY_TO: seller.account, PORT: '0', DATA: 'dear' })
    try {
      const [line] = (await once(createInterface({ input: dear.stdout }), 'line')) as [string]
      const origin = line.replace('selling at ', '')
      const refused = await run('buyer', [`${origin}/shout?text=${'x'.repeat(501)}`])
      expect(refused).toMatchObject({ code: 3, stdout: '' })
      expect(refused.stderr).toMatch(/over_cap: the server asks 0\.501 USD, more than the 0\.5 USD this client may pay\n$/)
    } finally {
      dear.kill('SIGTERM')
      await once(dear, 'close')
    }
  })
})
