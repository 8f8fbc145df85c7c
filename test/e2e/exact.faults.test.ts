import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromBase64, toBase64 } from '../../src/codec/index.js'
import { keysFromSeed } from '../../src/crypto/keys.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'
import { decodeReceipt, encodeReceipt, type LedgerEvent, type Receipt } from '../../src/ledger/index.js'
import type { ReceiptJson } from '../../src/light/index.js'
import { decodeCertificate, decodeHeader, encodeCertificate, headerHash, voteMessage, type Certificate } from '../../src/pulse/index.js'
import type { Wallet } from '../../src/sdk/index.js'
import { newWallet } from '../node/support.js'
import { Cli } from '../support/cli.js'
import { lyingProxy, type Lie, type LyingProxy } from '../support/lying-proxy.js'
import { expressSeller, startMarket, type Market } from '../support/market.js'
import { paymentFor, refusalIn } from '../support/payments.js'
import { startRedis, type RedisServer } from '../support/redis.js'
import { startSeller } from '../support/seller-process.js'

/** Whatever breaks: nobody pays and gets nothing, nobody gets two for one, and nothing that is not proven is served. */
let market: Market
let buyer: Wallet
const DEBIT = 251_100n

beforeAll(async () => {
  market = await startMarket()
})
afterAll(() => market.stop())

async function newBuyer(): Promise<void> {
  buyer = await market.buyer()
}

/** What the buyer has lost by now. */
async function debit(): Promise<bigint> {
  return 10_000_000n - (await market.balance(buyer.account))
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sion-faults-'))
  market.defer(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

describe('with Redis', () => {
  let redis: RedisServer

  beforeAll(async () => {
    redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
    market.defer(() => redis.stop())
  })

  it('50 copies of one payment over two server processes: one is served, one debit, the rest are refused with a reason', async () => {
    await newBuyer()
    const cli = await Cli.create({ SION_NODE: market.node.url, SION_CHAIN: market.node.chain })
    market.defer(() => cli.remove())
    const payee = newWallet().id
    const servers = [1, 2].map(() => cli.start('x402', 'serve', payee, '--listen', '127.0.0.1:0', '--redis', redis.url))
    market.defer(() => servers.forEach((server) => server.kill('SIGKILL')))
    const urls = await Promise.all(servers.map(async (server) => (await server.until(/^selling (http:\S+) /m))[1] ?? ''))
    const payment = await paymentFor(market, buyer, urls[0] ?? '')
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const response = await fetch(urls[i % 2] ?? '', { headers: payment.headers })
        return { status: response.status, text: await response.text(), ...refusalIn(response) }
      }),
    )
    expect(answers.filter(({ status }) => status === 200)).toMatchObject([{ text: '{"paid":true}' }])
    for (const { status, code } of answers) {
      if (status !== 200) expect([`402 payment_used`, `503 settlement_pending`]).toContain(`${status} ${String(code)}`)
    }
    expect(await debit()).toBe(DEBIT)
    expect(await market.received(payee)).toEqual({ payments: 1, amount: 250_000n })
  })

  it('stopped: 503 and nothing is claimed or paid; back: the same payment is served', async () => {
    await newBuyer()
    const seller = await startSeller(market, { store: { redis: redis.url } })
    const payment = await paymentFor(market, buyer, seller.url)
    await redis.kill()
    const away = await fetch(seller.url, { headers: payment.headers })
    expect([away.status, away.headers.get('retry-after'), refusalIn(away).code]).toEqual([503, '2', 'store_unavailable'])
    expect(away.headers.get('payment-required')).toBeNull()
    expect([seller.runs(), await debit()]).toEqual([0, 0n])
    await redis.restart()
    await expect.poll(async () => (await fetch(seller.url, { headers: payment.headers })).status, { timeout: 10_000 }).toBe(200)
    expect([seller.runs(), await debit()]).toEqual([1, DEBIT])
    await seller.kill()
  })

  it('gone while the ledger was at work: 503, and the same payment is served when it is back, one debit', async () => {
    await newBuyer()
    const seller = await startSeller(market, { store: { redis: redis.url } })
    const payment = await paymentFor(market, buyer, seller.url)
    market.node.pause()
    const asked = fetch(seller.url, { headers: payment.headers })
    const looking = new Redis(redis.url)
    await expect.poll(() => looking.exists(`sion:x402:nonce:${payment.nonce}`)).toBe(1)
    looking.disconnect()
    await redis.kill()
    market.node.resume()
    const lost = await asked
    expect([lost.status, refusalIn(lost).code]).toEqual([503, 'store_unavailable'])
    await redis.restart()
    await expect.poll(async () => (await fetch(seller.url, { headers: payment.headers })).status, { timeout: 20_000 }).toBe(200)
    expect(await debit()).toBe(DEBIT)
    await seller.kill()
  })

  it('frozen: 503 within seconds, nothing hangs', async () => {
    await newBuyer()
    const seller = await startSeller(market, { store: { redis: redis.url } })
    const payment = await paymentFor(market, buyer, seller.url)
    redis.freeze()
    const began = performance.now()
    const frozen = await fetch(seller.url, { headers: payment.headers })
    expect([frozen.status, refusalIn(frozen).code]).toEqual([503, 'store_unavailable'])
    expect(performance.now() - began).toBeLessThan(8_000)
    redis.thaw()
    await expect.poll(async () => (await fetch(seller.url, { headers: payment.headers })).status, { timeout: 20_000 }).toBe(200)
    expect([seller.runs(), await debit()]).toEqual([1, DEBIT])
    await seller.kill()
  })

  it('a server killed between settling and answering: a fresh one serves the same payment, one debit', () => killedWhileServing({ redis: redis.url }))
})

it('with a store on disk too, a server killed between settling and answering costs the buyer nothing', () => killedWhileServing({ folder: newFolder() }))

async function killedWhileServing(store: { folder: string } | { redis: string }): Promise<void> {
  await newBuyer()
  const first = await startSeller(market, { store, handler: 'hang' })
  const payment = await paymentFor(market, buyer, first.url)
  const lost = fetch(first.url, { headers: payment.headers }).then(() => 'answered', () => 'lost')
  await first.entered()
  expect(await debit()).toBe(DEBIT)
  await first.kill()
  expect(await lost).toBe('lost')

  const second = await startSeller(market, { store, payTo: first.payee })
  const served = await fetch(second.url, { headers: payment.headers })
  expect([served.status, await served.json()]).toEqual([200, { runs: 1 }])
  const replay = await fetch(second.url, { headers: payment.headers })
  expect([replay.status, refusalIn(replay).code]).toEqual([402, 'payment_used'])
  expect([second.runs(), await debit()]).toEqual([1, DEBIT])
  await second.kill()
}

it('a handler that throws: 500 that is not paid for, and the same payment is good again, once', async () => {
  await newBuyer()
  const seller = await startSeller(market, { store: { folder: newFolder() }, handler: 'throw' })
  const payment = await paymentFor(market, buyer, seller.url)
  const answers = []
  for (let i = 0; i < 3; i++) {
    const response = await fetch(seller.url, { headers: payment.headers })
    answers.push([response.status, refusalIn(response).transaction, refusalIn(response).code])
  }
  expect(answers).toEqual([
    [500, undefined, undefined],
    [200, payment.digest, undefined],
    [402, '', 'payment_used'],
  ])
  expect([seller.runs(), await debit()]).toEqual([2, DEBIT])
  await seller.kill()
})

describe('a ledger that stops answering', () => {
  const cases: [string, (proxy: LyingProxy) => void][] = [
    ['before it took the payment', () => market.node.pause()],
    [
      'after it took the payment and before it executed it',
      (proxy) => {
        proxy.lie = ({ method, path }) => {
          if (method === 'POST' && path === '/v1/transactions') market.node.pause()
          return undefined
        }
      },
    ],
    [
      'after it executed the payment and before it said so',
      (proxy) => {
        proxy.lie = ({ path, status }) => {
          if (!path.startsWith('/v1/receipts/') || status !== 200) return undefined
          market.node.pause()
          return { raw: (response) => response.destroy() }
        }
      },
    ],
  ]

  it.each(cases)('%s: 503 settlement_pending, and the same payment is served when it is back', async (_, stop) => {
    await newBuyer()
    const proxy = await lyingProxy(market.node.url)
    market.defer(() => proxy.stop())
    let runs = 0
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ runs: ++runs })), {
      node: proxy.url,
      settleWaitSeconds: 1,
    })
    const payment = await paymentFor(market, buyer, `${shop.url}/x`)
    stop(proxy)
    const pending = await fetch(`${shop.url}/x`, { headers: payment.headers })
    expect([pending.status, pending.headers.get('retry-after'), pending.headers.get('payment-required')]).toEqual([503, '2', null])
    expect(refusalIn(pending)).toMatchObject({ code: 'settlement_pending', reason: 'settlement_pending' })
    expect(runs).toBe(0)
    proxy.lie = () => undefined
    market.node.resume()
    const served = await fetch(`${shop.url}/x`, { headers: payment.headers })
    expect([served.status, await served.json()]).toEqual([200, { runs: 1 }])
    expect([await debit(), (await market.received(shop.payee)).payments]).toEqual([DEBIT, 1])
  })
})

describe('a node that lies to the seller', () => {
  let proxy: LyingProxy
  let theirs: ReceiptJson

  beforeAll(async () => {
    proxy = await lyingProxy(market.node.url)
    market.defer(() => proxy.stop())
    const { digest } = await market.api.fund(newWallet().id, '1')
    theirs = (await market.api.get<ReceiptJson>(`/v1/receipts/${digest}`)).body
  })

  const rewrite = (change: (answer: ReceiptJson) => ReceiptJson | Promise<ReceiptJson>) => async (answer: ReceiptJson) => change(structuredClone(answer))
  const inReceipt = (change: (receipt: Receipt) => Receipt) =>
    rewrite((answer) => ({ ...answer, receipt: toBase64(encodeReceipt(change(decodeReceipt(fromBase64(answer.receipt, 'receipt'))))) }))
  const inTransfer = (change: (event: Extract<LedgerEvent, { kind: 'Transferred' }>) => LedgerEvent) =>
    inReceipt((receipt) => ({ ...receipt, events: receipt.events.map((event) => (event.kind === 'Transferred' ? change(event) : event)) }))
  const inCertificate = (change: (certificate: Certificate) => Certificate | Promise<Certificate>) =>
    rewrite(async (answer) => {
      const certificate = await change(decodeCertificate(fromBase64(answer.pulse.certificate, 'certificate')))
      return { ...answer, pulse: { ...answer.pulse, certificate: toBase64(encodeCertificate(certificate)) } }
    })

  const lies: [string, (answer: ReceiptJson, digest: string) => ReceiptJson | Promise<ReceiptJson>][] = [
    ['another payee', inTransfer((event) => ({ ...event, outputs: event.outputs.map(([, amount]) => [newWallet().id, amount]) }))],
    ['another amount', inTransfer((event) => ({ ...event, outputs: event.outputs.map(([to, amount]) => [to, amount + 1n]) }))],
    ['another outcome', inReceipt((receipt) => ({ ...receipt, outcome: { kind: 'failed', reason: 'it says' } }))],
    ['someone else’s receipt', rewrite(() => theirs)],
    ['someone else’s receipt under this digest', (_, digest) => ({ ...theirs, receipt: toBase64(encodeReceipt({ ...decodeReceipt(fromBase64(theirs.receipt, 'receipt')), digest })) })],
    ['a certificate without votes', inCertificate((certificate) => ({ ...certificate, votes: [] }))],
    [
      'a certificate signed by somebody else',
      rewrite(async (answer) => {
        const header = decodeHeader(fromBase64(answer.pulse.header, 'header'))
        const forger = keysFromSeed(new Uint8Array(32).fill(7))
        const message = voteMessage({ chain: market.node.chain, epoch: header.epoch, number: header.number, headerHash: headerHash(header) })
        const [mlDsa, slhDsa] = [await inlineSignatures.sign('ml-dsa-44', forger, message), await inlineSignatures.sign('slh-dsa-sha2-128f', forger, message)]
        const certificate = decodeCertificate(fromBase64(answer.pulse.certificate, 'certificate'))
        const votes = certificate.votes.map(({ validator }) => ({ validator, mlDsa, slhDsa }))
        return { ...answer, pulse: { ...answer.pulse, certificate: toBase64(encodeCertificate({ ...certificate, votes })) } }
      }),
    ],
    ['another Pulse’s header', (answer) => ({ ...answer, pulse: { ...answer.pulse, header: theirs.pulse.header } })],
  ]

  it.each(lies)('about the receipt, showing %s, gets nothing served; an honest node does, with the same payment', async (_, lie) => {
    await newBuyer()
    proxy.lie = () => undefined
    let runs = 0
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ runs: ++runs })), {
      node: proxy.url,
      settleWaitSeconds: 5,
    })
    const payment = await paymentFor(market, buyer, `${shop.url}/x`)
    proxy.lie = ({ path, status, body }): Lie | undefined => {
      if (!path.startsWith('/v1/receipts/') || status !== 200) return undefined
      return {
        raw: (response) => {
          void Promise.resolve(lie(body as ReceiptJson, payment.digest)).then((told) => response.setHeader('content-type', 'application/json').end(JSON.stringify(told)))
        },
      }
    }
    const lied = await fetch(`${shop.url}/x`, { headers: payment.headers })
    expect([lied.status, refusalIn(lied).code, runs]).toEqual([503, 'settlement_pending', 0])
    proxy.lie = () => undefined
    const served = await fetch(`${shop.url}/x`, { headers: payment.headers })
    expect([served.status, runs, await debit()]).toEqual([200, 1, DEBIT])
  })
})

describe('a seller whose clock is wrong', () => {
  it('ahead: quotes of the other servers have expired for it, it says so, and nothing is paid', async () => {
    await newBuyer()
    const store = { folder: newFolder() }
    const right = await startSeller(market, { store })
    const ahead = await startSeller(market, { store, payTo: right.payee, clockOffsetMs: 600_000 })
    const payment = await paymentFor(market, buyer, right.url)
    const refused = await fetch(ahead.url, { headers: payment.headers })
    expect([refused.status, refusalIn(refused)]).toMatchObject([402, { code: 'quote_expired', reason: expect.stringMatching(/^the quote expired (299|300) s ago$/) as unknown }])
    expect(await debit()).toBe(0n)
    expect((await fetch(right.url, { headers: payment.headers })).status).toBe(200)
    await Promise.all([right.kill(), ahead.kill()])
  })

  it('behind: the ledger’s headers are in its future, nothing is served, its log says why; a right one serves the payment', async () => {
    await newBuyer()
    const store = { folder: newFolder() }
    const behind = await startSeller(market, { store, clockOffsetMs: -600_000 })
    const payment = await paymentFor(market, buyer, behind.url)
    const pending = await fetch(behind.url, { headers: payment.headers })
    expect([pending.status, refusalIn(pending).code]).toEqual([503, 'settlement_pending'])
    expect(behind.log()).toMatch(/header_from_future/)
    expect(behind.runs()).toBe(0)
    await behind.kill()
    const right = await startSeller(market, { store, payTo: behind.payee })
    const served = await fetch(right.url, { headers: payment.headers })
    expect([served.status, await debit()]).toEqual([200, DEBIT])
    await right.kill()
  })
})
