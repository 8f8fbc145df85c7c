import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import express from 'express'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inlineSignatures } from '../../src/crypto/signatures.js'
import { paywall } from '../../src/express/index.js'
import { localFacilitator } from '../../src/facilitator/local.js'
import { startFacilitator, type FacilitatorService } from '../../src/facilitator/service.js'
import { createLightClient, httpTransport } from '../../src/light/index.js'
import { createNodeClient, type Wallet } from '../../src/sdk/index.js'
import type { NonceStore } from '../../src/x402/nonce-store.js'
import { embeddedNonceStore } from '../../src/x402/stores/embedded.js'
import { memoryNonceStore } from '../../src/x402/stores/memory.js'
import type { PaymentPayload, PaymentRequirements } from '../../src/x402/wire.js'
import { newWallet } from '../node/support.js'
import { expressSeller, startMarket, type Market } from '../support/market.js'
import { signedPayment, someRequirements } from '../support/payments.js'

/** The facilitator over HTTP, as any seller's software in any language meets it. */
let market: Market
let service: FacilitatorService
let buyer: Wallet
const logged: string[] = []

beforeAll(async () => {
  market = await startMarket()
  service = await startService()
  buyer = await market.buyer('100')
})
afterAll(() => market.stop())

async function startService(
  options: { store?: NonceStore; settleWaitSeconds?: number; apiKeys?: string[]; port?: number } = {},
): Promise<FacilitatorService> {
  const transport = httpTransport(market.node.url)
  const log = (line: string): void => void logged.push(line)
  const started = await startFacilitator({
    facilitator: localFacilitator({
      light: createLightClient({ transport, chain: market.node.chain }),
      node: createNodeClient(transport),
      signatures: inlineSignatures,
      settleWaitSeconds: options.settleWaitSeconds ?? 10,
      logger: { info: log, warn: log, error: log },
    }),
    store: options.store ?? memoryNonceStore(),
    host: '127.0.0.1',
    port: options.port ?? 0,
    apiKeys: options.apiKeys ?? [],
    logger: { info: log, warn: log, error: log },
  })
  market.defer(() => started.stop())
  return started
}

interface Said {
  status: number
  body: Record<string, unknown> & { extensions?: { sion?: { code?: string } } }
}

async function post(path: string, body: unknown, headers: Record<string, string> = {}, at = service): Promise<Said> {
  const response = await fetch(at.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Said['body'] }
}

const asked = (paymentPayload: PaymentPayload, paymentRequirements: PaymentRequirements) => ({ x402Version: 2, paymentPayload, paymentRequirements })

/** A fresh payment and the request about it. */
async function fresh(payee = newWallet().id) {
  const requirements = someRequirements(market, payee)
  const { digest, header: _, ...payment } = await signedPayment(market, buyer, requirements)
  return { digest, payee, request: asked(payment, requirements) }
}

describe('what x402 version 2 asks of a facilitator', () => {
  it('GET /supported: kinds, extensions, signers', async () => {
    const response = await fetch(`${service.url}/supported`)
    expect(response.headers.get('content-type')).toMatch(/^application\/json/)
    expect(await response.json()).toEqual({
      kinds: [{ x402Version: 2, scheme: 'exact', network: market.node.network, extra: { chain: market.node.chain, decimals: 6 } }],
      extensions: [],
      signers: {},
    })
  })

  it('POST /verify: isValid and the payer, and nothing moves', async () => {
    const { request, payee } = await fresh()
    expect(await post('/verify', request)).toEqual({ status: 200, body: { isValid: true, payer: buyer.account } })
    expect(await market.received(payee)).toEqual({ payments: 0, amount: 0n })
  })

  it('POST /settle: success, payer, transaction, network, and the receipt’s Pulse and stake', async () => {
    const { request, payee, digest } = await fresh()
    const { status, body } = await post('/settle', request)
    expect(status).toBe(200)
    expect(body).toEqual({
      success: true,
      payer: buyer.account,
      transaction: digest,
      network: market.node.network,
      extensions: { sion: { chain: market.node.chain, pulse: expect.any(Number) as unknown, quorum: expect.any(Number) as unknown, signedStake: expect.any(Number) as unknown } },
    })
    expect(await market.received(payee)).toEqual({ payments: 1, amount: 250_000n })
  })

  it('says what is wrong with a payment, with a code and never another status', async () => {
    const requirements = someRequirements(market, newWallet().id)
    const { payload } = await signedPayment(market, buyer, requirements)
    const other = someRequirements(market, newWallet().id)
    const flipped = Buffer.from(String(payload['transaction']), 'base64')
    flipped[flipped.length - 100] = (flipped.at(-100) ?? 0) ^ 1
    const cases: [string, PaymentPayload, PaymentRequirements][] = [
      ['invalid_payment_requirements', { x402Version: 2, accepted: other, payload }, requirements],
      ['invalid_transaction', { x402Version: 2, accepted: other, payload }, other],
      ['unsupported_scheme', { x402Version: 2, accepted: { ...requirements, scheme: 'upto' }, payload }, { ...requirements, scheme: 'upto' }],
      ['invalid_network', { x402Version: 2, accepted: requirements, payload }, { ...requirements, network: 'eip155:1' }],
      ['invalid_signature', { x402Version: 2, accepted: requirements, payload: { transaction: flipped.toString('base64') } }, requirements],
    ]
    for (const [code, payment, required] of cases) {
      const verified = await post('/verify', asked(payment, required))
      expect(verified).toMatchObject({ status: 200, body: { isValid: false, extensions: { sion: { code } } } })
      expect(verified.body['invalidReason']).toMatch(/^[^\n]{10,200}$/)
      expect(await post('/settle', asked(payment, required))).toMatchObject({
        status: 200,
        body: { success: false, transaction: '', network: required.network, extensions: { sion: { code } } },
      })
    }
  })

  it('GET /healthz, and /metrics for Prometheus', async () => {
    await post('/settle', (await fresh()).request)
    expect(await (await fetch(`${service.url}/healthz`)).json()).toEqual({ ok: true })
    const metrics = await fetch(`${service.url}/metrics`)
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain/)
    const text = await metrics.text()
    expect(text).toMatch(/^sion_facilitator_settlements_total\{outcome="success"\} [1-9]/m)
    expect(text).toMatch(/^sion_facilitator_settle_seconds_count [1-9]/m)
    expect(text).toContain('process_cpu_seconds_total')
  })

  it('anything else is a 404 that says what there is', async () => {
    const response = await fetch(`${service.url}/nothing`)
    expect([response.status, await response.json()]).toEqual([404, { error: expect.stringContaining('POST /verify, POST /settle, GET /supported') as unknown }])
  })
})

describe('a body that is none', () => {
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const cases: [string, () => Promise<unknown>, string][] = [
    ['no JSON', async () => 'payment=1', 'body'],
    ['nothing', async () => '', 'body'],
    ['null', async () => null, 'body'],
    ['an array', async () => [], 'body'],
    ['a number', async () => 7, 'body'],
    ['nested very deep', async () => deep, 'body'],
    ['no version', async () => ({ ...(await fresh()).request, x402Version: undefined }), 'x402Version'],
    ['version 1', async () => ({ ...(await fresh()).request, x402Version: 1 }), 'x402Version'],
    ['no payment', async () => ({ ...(await fresh()).request, paymentPayload: undefined }), 'paymentPayload'],
    ['a payment that is null', async () => ({ ...(await fresh()).request, paymentPayload: null }), 'paymentPayload'],
    ['a payment of version 1', async () => change((request) => (request.paymentPayload.x402Version = 1)), 'paymentPayload.x402Version'],
    ['accepted that is null', async () => change((request) => Object.assign(request.paymentPayload, { accepted: null })), 'paymentPayload.accepted'],
    ['a payload that is text', async () => change((request) => Object.assign(request.paymentPayload, { payload: 'x' })), 'paymentPayload.payload'],
    ['an empty payload', async () => change((request) => (request.paymentPayload.payload = {})), 'payload'],
    ['a transaction that is no base64', async () => change((request) => (request.paymentPayload.payload = { transaction: '*' })), 'payload.transaction'],
    ['a transaction of no bytes', async () => change((request) => (request.paymentPayload.payload = { transaction: '' })), 'transaction'],
    ['a transaction with one byte more', async () => change((request) => (request.paymentPayload.payload = longer(request.paymentPayload.payload))), 'transaction'],
    ['a digest in capitals', async () => change((request) => (request.paymentPayload.payload = { digest: 'AB'.repeat(32), proof: '' })), 'payload.digest'],
    ['a proof of another length', async () => change((request) => (request.paymentPayload.payload = { digest: 'ab'.repeat(32), proof: 'AAAA' })), 'payload.proof'],
    ['no requirements', async () => ({ ...(await fresh()).request, paymentRequirements: undefined }), 'paymentRequirements'],
    ['a network without a colon', async () => change((request) => Object.assign(request.paymentRequirements, { network: 'sion' })), 'paymentRequirements.network'],
    ['seconds that are text', async () => change((request) => Object.assign(request.paymentRequirements, { maxTimeoutSeconds: '300' })), 'paymentRequirements.maxTimeoutSeconds'],
    ['extra that is a list', async () => change((request) => Object.assign(request.paymentRequirements, { extra: [] })), 'paymentRequirements.extra'],
  ]

  async function change(alter: (request: Awaited<ReturnType<typeof fresh>>['request']) => unknown): Promise<unknown> {
    // Through JSON: accepted and requirements must not stay one object.
    const request = JSON.parse(JSON.stringify((await fresh()).request)) as Awaited<ReturnType<typeof fresh>>['request']
    alter(request)
    return request
  }
  function longer({ transaction }: Record<string, unknown>): Record<string, unknown> {
    return { transaction: Buffer.concat([Buffer.from(String(transaction), 'base64'), Buffer.of(0)]).toString('base64') }
  }

  it.each(cases)('%s: 400 on /settle, one line that names the field', async (_, make, field) => {
    const { status, body } = await post('/settle', await make())
    expect(status).toBe(400)
    expect(String(body['error'])).toMatch(/^[^\n]{1,300}$/)
    expect(String(body['field'])).toContain(field)
  })

  it.each(cases)('%s: 400 on /verify, or a payment that is not valid', async (_, make) => {
    const { status, body } = await post('/verify', await make())
    expect(status === 400 || (status === 200 && body['isValid'] === false)).toBe(true)
    expect(String(body['error'] ?? body['invalidReason'])).toMatch(/^[^\n]{1,300}$/)
  })

  it('over 64 kB is not read: 413', async () => {
    const { request } = await fresh()
    const padded = { ...request, extensions: { pad: 'x'.repeat(70_000) } }
    expect((await post('/settle', padded)).status).toBe(413)
    expect((await post('/verify', padded)).status).toBe(413)
  })
})

describe('API keys', () => {
  it('are needed for verify and settle where there are any, and for nothing else', async () => {
    const keys = ['first-key-of-sixteen', 'second-key-of-sixteen']
    const guarded = await startService({ apiKeys: keys })
    const { request } = await fresh()
    for (const authorization of [undefined, '', 'Bearer', 'Bearer wrong-key-of-sixteen', `Basic ${keys[0]}`, keys[0] ?? '']) {
      const headers = authorization === undefined ? undefined : { authorization }
      for (const path of ['/verify', '/settle']) expect((await post(path, request, headers, guarded)).status).toBe(401)
    }
    for (const key of keys) expect((await post('/verify', request, { authorization: `Bearer ${key}` }, guarded)).body).toMatchObject({ isValid: true })
    for (const path of ['/supported', '/healthz', '/metrics']) expect((await fetch(guarded.url + path)).status).toBe(200)
  })
})

describe('a payment settles once', () => {
  const success = (digest: string) => ({ status: 200, body: { success: true, transaction: digest } })
  const used = { status: 200, body: { success: false, transaction: '', extensions: { sion: { code: 'payment_used' } } } }

  it('for one of two askers without a name, one debit', async () => {
    const { request, digest, payee } = await fresh()
    const answers = await Promise.all([post('/settle', request), post('/settle', request)])
    expect(answers.sort((a, b) => Number(b.body['success']) - Number(a.body['success']))).toMatchObject([success(digest), used])
    expect(await post('/settle', request)).toMatchObject(used)
    expect((await market.received(payee)).payments).toBe(1)
  })

  it('for an asker with a name as often as it asks, and for no other', async () => {
    const { request, digest, payee } = await fresh()
    const mine = { 'idempotency-key': 'asker-1' }
    const first = await Promise.all([post('/settle', request, mine), post('/settle', request, mine)])
    for (const answer of [...first, await post('/settle', request, mine)]) expect(answer).toMatchObject(success(digest))
    expect(await post('/settle', request, { 'idempotency-key': 'asker-2' })).toMatchObject(used)
    expect(await post('/settle', request)).toMatchObject(used)
    expect((await market.received(payee)).payments).toBe(1)
  })

  it('for an asker whose connection closed before the answer: it asks again and gets it, once', async () => {
    const { request: body, digest, payee } = await fresh()
    market.node.pause()
    const asking = request(`${service.url}/settle`, { method: 'POST', headers: { 'content-type': 'application/json' } })
    asking.on('error', () => {})
    asking.end(JSON.stringify(body))
    await new Promise((resolve) => asking.once('finish', resolve))
    // Long enough for the service to have read it and to be waiting for the ledger.
    await expect.poll(async () => (await fetch(`${service.url}/supported`)).status).toBe(200)
    asking.destroy()
    market.node.resume()
    expect(await post('/settle', body)).toMatchObject(success(digest))
    expect(await post('/settle', body)).toMatchObject(used)
    expect((await market.received(payee)).payments).toBe(1)
  })

  it('for an asker that was told settlement_pending: it asks again and gets the success', async () => {
    const impatient = await startService({ settleWaitSeconds: 0.3 })
    const { request, digest, payee } = await fresh()
    expect(await post('/verify', request, {}, impatient)).toMatchObject({ body: { isValid: true } })
    market.node.pause()
    const began = performance.now()
    const pending = await post('/settle', request, {}, impatient)
    expect(pending).toMatchObject({ status: 200, body: { success: false, errorReason: 'settlement_pending' } })
    expect(performance.now() - began).toBeLessThan(3_000)
    market.node.resume()
    await expect.poll(async () => (await post('/settle', request, {}, impatient)).body['success'], { timeout: 10_000 }).toBe(true)
    expect(await post('/settle', request, {}, impatient)).toMatchObject(used)
    expect(await market.received(payee)).toEqual({ payments: 1, amount: 250_000n })
    expect(digest).toMatch(/^[0-9a-f]{64}$/)
  })

  it('also across a restart, where its store is on disk', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sion-facilitator-'))
    const { request, digest } = await fresh()
    const named = await fresh()
    const before = await startService({ store: embeddedNonceStore({ folder }) })
    expect(await post('/settle', request, {}, before)).toMatchObject(success(digest))
    expect(await post('/settle', named.request, { 'idempotency-key': 'me' }, before)).toMatchObject(success(named.digest))
    await before.stop()
    const after = await startService({ store: embeddedNonceStore({ folder }) })
    expect(await post('/settle', request, {}, after)).toMatchObject(used)
    expect(await post('/settle', named.request, { 'idempotency-key': 'me' }, after)).toMatchObject(success(named.digest))
    expect(await post('/settle', named.request, {}, after)).toMatchObject(used)
    await after.stop()
    rmSync(folder, { recursive: true })
  })
})

describe('a seller with a facilitator’s address', () => {
  it('sells; while the facilitator is away it is closed, and the same payment is served when it is back', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sion-facilitator-'))
    let remote = await startService({ store: embeddedNonceStore({ folder }), apiKeys: ['a-key-of-sixteen-or-more'] })
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ x: 1 })), {
      facilitator: remote.url,
      facilitatorKey: 'a-key-of-sixteen-or-more',
    })
    const pay = market.fetchOf(buyer)
    expect((await pay(`${shop.url}/x`)).status).toBe(200)

    await remote.stop()
    const impatient = market.fetchOf(buyer, { patienceSeconds: 0 })
    await expect(impatient(`${shop.url}/x`)).rejects.toMatchObject({ code: 'outcome_unknown' })
    expect((await market.received(shop.payee)).payments).toBe(1)
    remote = await startService({ store: embeddedNonceStore({ folder }), apiKeys: ['a-key-of-sixteen-or-more'], port: Number(new URL(remote.url).port) })
    expect((await impatient(`${shop.url}/x`)).status).toBe(200)
    expect([impatient.spent(), (await market.received(shop.payee)).payments]).toEqual([250_000n, 2])
    await remote.stop()
    rmSync(folder, { recursive: true })
  })

  it('is closed, not open, while the facilitator was never there, and opens by itself', async () => {
    const spare = await startService()
    const { port } = new URL(spare.url)
    await spare.stop()
    const charge = paywall({ payTo: newWallet().id, store: memoryNonceStore(), facilitator: spare.url, signatures: inlineSignatures })
    market.defer(() => charge.close())
    const app = express()
    app.get('/x', charge('0.25'), (_, response) => void response.json({ x: 1 }))
    const url = await market.listen(app)
    await expect(charge.ready()).rejects.toMatchObject({ code: 'facilitator_unavailable' })
    const closed = await fetch(`${url}/x`)
    expect([closed.status, closed.headers.get('retry-after'), await closed.json()]).toMatchObject([503, '2', { code: 'facilitator_unavailable' }])
    await startService({ port: Number(port) })
    await charge.ready()
    expect((await market.fetchOf(buyer)(`${url}/x`)).status).toBe(200)
  })

  it('stays closed with a key that the facilitator does not know', async () => {
    const guarded = await startService({ apiKeys: ['a-key-of-sixteen-or-more'] })
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.end()), {
      facilitator: guarded.url,
      facilitatorKey: 'another-key-of-sixteen',
    })
    await expect(market.fetchOf(buyer, { patienceSeconds: 0 })(`${shop.url}/x`)).rejects.toMatchObject({ code: 'outcome_unknown' })
    expect((await market.received(shop.payee)).payments).toBe(0)
  })
})

it('nothing that could be spent is ever logged', () => {
  expect(logged.length).toBeGreaterThan(5)
  for (const line of logged) expect(line).not.toMatch(/[A-Za-z0-9+/]{200}/)
})
