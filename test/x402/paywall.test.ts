import { afterEach, describe, expect, it, vi } from 'vitest'
import { SionError, textToBase64 } from '../../src/codec/index.js'
import { createSeller } from '../../src/facilitator/seller.js'
import type { SettleResponse } from '../../src/x402/wire.js'
import { answerIn, askFor, checkout, codeIn, paidIn, quoteIn, settlementIn, type Ask, type Checkout } from './support/checkout.js'
import { fakeFacilitator, successFor } from './support/fake-facilitator.js'
import { CHAIN, pay, PAYEE, PAYER, type MadePayment, type PaymentChanges } from './support/payments.js'
import { gateOf } from './support/watched-store.js'

const NETWORK = `sion:${CHAIN.slice(0, 32)}`

afterEach(() => {
  vi.useRealTimers()
})

async function payFor(shop: Checkout, changes: PaymentChanges = {}, ask: Ask = {}): Promise<MadePayment> {
  return pay(quoteIn(answerIn(await shop.ask(ask))), changes)
}

describe('an unpaid request', () => {
  it('gets 402 with the same JSON as header and as body, and is not to be stored', async () => {
    const answer = answerIn(await checkout().ask())
    expect(answer.status).toBe(402)
    expect(answer.headers).toMatchObject({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    expect(answer.headers).not.toHaveProperty('PAYMENT-RESPONSE')
    expect(JSON.parse(answer.body)).toEqual(quoteIn(answer))
    const { nonce } = quoteIn(answer).accepts[0]!.extra
    expect(quoteIn(answer)).toEqual({
      x402Version: 2,
      resource: { url: '/v1/resource', description: '/v1/resource, 0.25 USD per request', mimeType: 'application/json' },
      accepts: [
        {
          scheme: 'exact',
          network: NETWORK,
          asset: 'USD',
          amount: '250000',
          payTo: PAYEE,
          maxTimeoutSeconds: 300,
          extra: { chain: CHAIN, decimals: 6, nonce, purpose: `x402:${String(nonce)}` },
        },
      ],
    })
  })

  it('costs neither a store nor a facilitator anything, however many there are', async () => {
    const shop = checkout()
    const claim = vi.spyOn(shop.store, 'claim')
    await Promise.all(Array.from({ length: 1_000 }, () => shop.ask()))
    expect(claim).not.toHaveBeenCalled()
    expect(shop.facilitator.verified).toHaveLength(0)
  })

  it('of a browser gets a page with the price, without script, and the very same header', async () => {
    const shop = checkout({}, { price: '0.25', description: '<script>alert("&")</script>' })
    const answer = answerIn(await shop.ask({ headers: { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } }))
    expect(answer.status).toBe(402)
    expect(answer.headers['Content-Type']).toBe('text/html; charset=utf-8')
    expect(answer.body).toContain('0.25 USD')
    expect(answer.body).not.toContain('<script')
    expect(quoteIn(answer).accepts).toHaveLength(1)
  })

  it.each([
    ['application/json', false],
    ['*/*', false],
    ['text/html;q=0', false],
    ['text/html;q=0.5, application/json', false],
    ['text/html, application/json', false],
    ['text/html, application/json;q=0.9', true],
    ['TEXT/HTML', true],
    [';;;,,,q=', false],
  ])('that accepts %s gets a page: %s', async (accept, page) => {
    const { headers } = answerIn(await checkout().ask({ headers: { Accept: accept } }))
    expect(headers['Content-Type']?.startsWith('text/html')).toBe(page)
  })

  it('gets a resource named by its path, and by the configured origin, whatever the Host says', async () => {
    const headers = { Host: 'evil.example', 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example' }
    const plain = quoteIn(answerIn(await checkout().ask({ headers, target: '/a?b=c' })))
    expect(plain.resource.url).toBe('/a')
    const placed = quoteIn(answerIn(await checkout({ origin: 'https://api.example.com/' }).ask({ headers, target: '/a' })))
    expect(placed.resource.url).toBe('https://api.example.com/a')
    const absolute = quoteIn(answerIn(await checkout().ask({ target: 'http://evil.example/a' })))
    expect(absolute.resource.url).toBe('/a')
    const slashes = quoteIn(answerIn(await checkout({ origin: 'https://api.example.com' }).ask({ target: '//evil.example/a' })))
    expect(slashes.resource.url).toBe('https://api.example.com//evil.example/a')
  })

  it('of OPTIONS is no business of the handler, and costs nothing', async () => {
    const shop = checkout()
    expect(answerIn(await shop.ask({ method: 'OPTIONS' }))).toEqual({ status: 204, headers: {}, body: '' })
  })

  it('of a free route passes, whatever the method and whatever it sends', async () => {
    const shop = checkout({}, 'free')
    for (const method of ['GET', 'OPTIONS', 'POST']) {
      expect(await shop.ask({ method, payment: 'nonsense' })).toEqual({ kind: 'free' })
    }
  })

  it('is priced by the request where the price is computed, and free where that says so', async () => {
    const shop = checkout()
    const route = shop.route({ price: async () => '0.5' })
    expect(quoteIn(answerIn(await askFor(route))).accepts[0]?.amount).toBe('500000')
    expect(await askFor(shop.route({ price: () => 'free' }))).toEqual({ kind: 'free' })
  })

  it('goes to the app’s error handling when the price throws or is none, and never to the handler', async () => {
    const shop = checkout()
    await expect(askFor(shop.route({ price: () => Promise.reject(new Error('no tariff')) }))).rejects.toThrow('no tariff')
    await expect(askFor(shop.route({ price: () => '0.1 USD' }))).rejects.toThrow(/price: expected USD in decimal/)
    await expect(askFor(shop.route({ price: () => '0' }))).rejects.toThrow(/must be said as "free"/)
    // @ts-expect-error what plain JavaScript may give
    await expect(askFor(shop.route({ price: () => undefined }))).rejects.toThrow(/not nothing/)
  })
})

describe('a paid request', () => {
  it('is handed to the handler, and its answer carries the settlement', async () => {
    const shop = checkout()
    const { header, digest } = await payFor(shop)
    const paid = paidIn(await shop.ask({ payment: header }))
    expect(shop.facilitator.verified).toHaveLength(1)
    expect(shop.facilitator.settled).toHaveLength(1)
    const outcome = await paid.finish(200)
    if (!('headers' in outcome)) throw new Error('replaced')
    expect(Object.keys(outcome.headers)).toEqual(['PAYMENT-RESPONSE'])
    expect(settlementIn({ status: 200, headers: outcome.headers, body: '' })).toMatchObject({
      success: true,
      payer: PAYER,
      transaction: digest,
      network: NETWORK,
    })
  })

  it('buys one answer: the same payment again is refused, with the reason and a fresh quote', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    await paidIn(await shop.ask({ payment: header })).finish(200)
    const again = answerIn(await shop.ask({ payment: header }))
    expect(again.status).toBe(402)
    expect(codeIn(again)).toBe('payment_used')
    expect(settlementIn(again)).toMatchObject({ success: false, transaction: '', network: NETWORK, errorReason: expect.stringMatching(/has been used/) })
    expect(quoteIn(again).error).toMatch(/has been used/)
    expect(quoteIn(again).accepts[0]?.extra['nonce']).not.toBe((await payFor(shop)).payload.accepted.extra['nonce'])
  })

  it('of which fifty copies come at once is handed to the handler once', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    const handled = gateOf()
    let running = 0
    const answers = Promise.all(
      Array.from({ length: 50 }, async () => {
        const admission = await shop.ask({ payment: header })
        if (admission.kind !== 'paid') return codeIn(answerIn(admission))
        running++
        await handled.wait()
        return Object.keys(await admission.finish(200)).join('')
      }),
    )
    await handled.reached
    handled.open()
    const counted = await answers
    expect(running).toBe(1)
    expect(counted.filter((answer) => answer === 'headers')).toHaveLength(1)
    expect(counted.filter((answer) => answer === 'payment_used')).toHaveLength(49)
    expect(shop.facilitator.settled).toHaveLength(1)
  })

  it.each([500, 502, 599])('stays good when the handler answers %i', async (status) => {
    const shop = checkout()
    const { header } = await payFor(shop)
    expect(await paidIn(await shop.ask({ payment: header })).finish(status)).toEqual({ headers: {} })
    expect(await paidIn(await shop.ask({ payment: header })).finish(200)).toHaveProperty('headers.PAYMENT-RESPONSE')
  })

  it.each([200, 204, 302, 304, 400, 404, 499])('is spent when the handler answers %i', async (status) => {
    const shop = checkout()
    const { header } = await payFor(shop)
    await paidIn(await shop.ask({ payment: header })).finish(status)
    expect(codeIn(answerIn(await shop.ask({ payment: header })))).toBe('payment_used')
  })

  it('stays good when its client goes away before a byte left, be it while the answer was decided', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    await paidIn(await shop.ask({ payment: header })).release()
    const late = paidIn(await shop.ask({ payment: header }))
    await late.finish(200)
    await late.release()
    expect(paidIn(await shop.ask({ payment: header })).kind).toBe('paid')
  })

  it('is no longer this request’s when another has taken it over: 503, come again', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    const paid = paidIn(await shop.ask({ payment: header }))
    vi.spyOn(shop.store, 'spend').mockResolvedValueOnce(false)
    const outcome = await paid.finish(200)
    if (!('answer' in outcome)) throw new Error('served')
    expect(outcome.answer.status).toBe(503)
    expect(codeIn(outcome.answer)).toBe('settlement_pending')
  })

  it('that cannot be marked spent is not served, and stays good', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    const paid = paidIn(await shop.ask({ payment: header }))
    shop.store.beforeSpend = () => Promise.reject(new SionError('store_unavailable', 'the disk is full'))
    const outcome = await paid.finish(200)
    if (!('answer' in outcome)) throw new Error('served')
    expect(outcome.answer).toMatchObject({ status: 503, headers: { 'Retry-After': '2', 'Cache-Control': 'no-store' } })
    expect(codeIn(outcome.answer)).toBe('store_unavailable')
    expect(outcome.answer.body).not.toContain('disk')
    shop.store.beforeSpend = undefined
    expect(await paidIn(await shop.ask({ payment: header })).finish(200)).toHaveProperty('headers.PAYMENT-RESPONSE')
  })

  it('is asked for at the facilitator in this seller’s name, the same each time, another for each payment', async () => {
    const shop = checkout()
    const [first, second] = [await payFor(shop), await payFor(shop)]
    for (const { header } of [first, first, second]) await paidIn(await shop.ask({ payment: header })).release()
    const [one, again, other] = shop.facilitator.askers
    expect(one).toMatch(/^[0-9a-f]{64}$/)
    expect(again).toBe(one)
    expect(other).not.toBe(one)
    expect(checkout().facilitator.askers).not.toContain(one)
  })

  it('of HEAD is priced as GET: one quote serves either', async () => {
    const shop = checkout()
    const forHead = await payFor(shop, {}, { method: 'HEAD' })
    expect(paidIn(await shop.ask({ method: 'GET', payment: forHead.header })).kind).toBe('paid')
    const forGet = await payFor(shop)
    expect(paidIn(await shop.ask({ method: 'HEAD', payment: forGet.header })).kind).toBe('paid')
  })

  it('names the same path with or without an origin in the request line', async () => {
    const shop = checkout()
    const { header } = await payFor(shop, {}, { target: 'http://anything.example/v1/resource?q=1' })
    expect(paidIn(await shop.ask({ target: '/v1/resource?q=1', payment: header })).kind).toBe('paid')
  })

  it('leaves lines that name digest, amount and payer, and never a header or a payload', async () => {
    const shop = checkout()
    const { header, digest, payload } = await payFor(shop)
    await paidIn(await shop.ask({ payment: header })).finish(200)
    await shop.ask({ payment: header })
    const log = shop.lines.join('\n')
    expect(log).toContain(digest)
    expect(log).toContain('0.25 USD')
    expect(log).toContain(PAYER)
    expect(log).not.toContain(header)
    expect(log).not.toContain(String(payload.payload['transaction']).slice(0, 64))
  })
})

describe('a payment that is refused', () => {
  it.each<[string, string, PaymentChanges]>([
    ['for another amount', 'invalid_payment_requirements', { accepted: (quoted) => ({ ...quoted, amount: '1' }) }],
    ['for another payee', 'invalid_payment_requirements', { accepted: (quoted) => ({ ...quoted, payTo: PAYER }) }],
    ['in another asset', 'invalid_payment_requirements', { accepted: (quoted) => ({ ...quoted, asset: 'EUR' }) }],
    ['with another purpose', 'invalid_payment_requirements', { accepted: (quoted) => ({ ...quoted, extra: { ...quoted.extra, purpose: 'x402:' } }) }],
    ['without a nonce', 'invalid_payment_requirements', { accepted: (quoted) => ({ ...quoted, extra: {} }) }],
    ['with a nonce that is a number', 'invalid_payment_requirements', { accepted: (quoted) => ({ ...quoted, extra: { ...quoted.extra, nonce: 1 } }) }],
    ['on another network', 'invalid_network', { accepted: (quoted) => ({ ...quoted, network: 'eip155:8453' }) }],
    ['by another scheme', 'unsupported_scheme', { accepted: (quoted) => ({ ...quoted, scheme: 'upto' }) }],
    ['whose transaction pays less', 'invalid_transaction', { action: { amount: 249_999n } }],
    ['whose transaction pays more', 'invalid_transaction', { action: { amount: 250_001n } }],
    ['whose transaction pays somebody else', 'invalid_transaction', { action: { to: PAYER } }],
    ['whose transaction has no purpose', 'invalid_transaction', { action: { purpose: '' } }],
    ['whose transaction is for another chain', 'invalid_transaction', { body: { chain: 'c1'.repeat(32) } }],
    ['whose transaction is no transfer', 'invalid_transaction', { body: { action: { kind: 'setDual', dual: true } } }],
  ])('%s: 402 before anybody is asked', async (_, code, changes) => {
    const shop = checkout()
    const claim = vi.spyOn(shop.store, 'claim')
    const { header } = await payFor(shop, changes)
    const answer = answerIn(await shop.ask({ payment: header }))
    expect([answer.status, codeIn(answer)]).toEqual([402, code])
    expect(answer.headers['Cache-Control']).toBe('no-store')
    expect(quoteIn(answer).error).toBe(settlementIn(answer).errorReason)
    expect(shop.facilitator.verified).toHaveLength(0)
    expect(claim).not.toHaveBeenCalled()
  })

  it.each<[string, Ask]>([
    ['method', { method: 'POST' }],
    ['path', { target: '/v1/other' }],
    ['spelling of the path', { target: '/v1/Resource' }],
    ['query', { target: '/v1/resource?a' }],
  ])('since it was quoted for another %s: 402 before anybody is asked', async (_, ask) => {
    const shop = checkout()
    const { header } = await payFor(shop)
    expect(codeIn(answerIn(await shop.ask({ ...ask, payment: header })))).toBe('quote_unknown')
    expect(shop.facilitator.verified).toHaveLength(0)
  })

  it('by the facilitator: with its code and its words, and nothing is claimed', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    const claim = vi.spyOn(shop.store, 'claim')
    shop.facilitator.onVerify = async () => ({ isValid: false, invalidReason: 'no good', payer: PAYER, extensions: { sion: { code: 'invalid_signature' } } })
    const answer = answerIn(await shop.ask({ payment: header }))
    expect([answer.status, codeIn(answer), settlementIn(answer).errorReason]).toEqual([402, 'invalid_signature', 'no good'])
    expect(settlementIn(answer).payer).toBe(PAYER)
    expect(shop.facilitator.settled).toHaveLength(0)
    expect(claim).not.toHaveBeenCalled()
  })

  it('by the ledger: with its reason and the transaction that failed, and the nonce keeps its payment', async () => {
    const shop = checkout()
    const first = await payFor(shop)
    shop.facilitator.onSettle = async (): Promise<SettleResponse> => ({
      success: false,
      errorReason: 'the ledger refused the payment: balance too low',
      payer: PAYER,
      transaction: first.digest,
      network: 'sion:ab',
      extensions: { sion: { code: 'insufficient_funds' } },
    })
    const answer = answerIn(await shop.ask({ payment: first.header }))
    expect([answer.status, codeIn(answer), settlementIn(answer).transaction]).toEqual([402, 'insufficient_funds', first.digest])
    shop.facilitator.onSettle = undefined
    expect(paidIn(await shop.ask({ payment: first.header })).kind).toBe('paid')
  })

  it('by a facilitator that gives no reason or an unknown code: still refused', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    shop.facilitator.onVerify = async () => ({ isValid: false, extensions: { sion: { code: 'toString' } } })
    expect(codeIn(answerIn(await shop.ask({ payment: header })))).toBe('transaction_refused')
  })

  it('since another payment stands behind its quote', async () => {
    const shop = checkout()
    const required = quoteIn(answerIn(await shop.ask()))
    const [first, second] = [pay(required), pay(required)]
    await paidIn(await shop.ask({ payment: first.header })).release()
    const answer = answerIn(await shop.ask({ payment: second.header }))
    expect([answer.status, codeIn(answer)]).toEqual([402, 'quote_bound'])
    expect(shop.facilitator.settled).toHaveLength(1)
    expect(paidIn(await shop.ask({ payment: first.header })).kind).toBe('paid')
  })
})

describe('a quote that has expired', () => {
  it('is good to its last second, and refused from the next', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    const shop = checkout()
    const [first, second] = [await payFor(shop), await payFor(shop)]
    vi.setSystemTime(1_700_000_300_999)
    expect(paidIn(await shop.ask({ payment: first.header })).kind).toBe('paid')
    vi.setSystemTime(1_700_000_301_000)
    const answer = answerIn(await shop.ask({ payment: second.header }))
    expect([answer.status, codeIn(answer)]).toEqual([402, 'quote_expired'])
    expect(shop.facilitator.verified).toHaveLength(1)
  })

  it('still serves the payment that stood behind it in time, for an hour and no second more', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    const shop = checkout()
    const required = quoteIn(answerIn(await shop.ask()))
    const [bound, other] = [pay(required), pay(required)]
    await paidIn(await shop.ask({ payment: bound.header })).release()
    vi.setSystemTime(1_700_003_900_999)
    expect(codeIn(answerIn(await shop.ask({ payment: other.header })))).toBe('quote_expired')
    await paidIn(await shop.ask({ payment: bound.header })).release()
    vi.setSystemTime(1_700_003_901_000)
    expect(codeIn(answerIn(await shop.ask({ payment: bound.header })))).toBe('quote_expired')
  })

  it('never serves a spent payment again, also where its record ends while the payment is looked at', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 1_700_000_000_000 })
    const shop = checkout()
    const { header } = await payFor(shop)
    await paidIn(await shop.ask({ payment: header })).finish(200)
    vi.setSystemTime(1_700_003_900_999)
    shop.facilitator.onVerify = async () => {
      // A slow facilitator: a minute passes between the look at the record and the claim.
      vi.setSystemTime(1_700_003_960_999)
      return { isValid: true, payer: PAYER }
    }
    expect(codeIn(answerIn(await shop.ask({ payment: header })))).toBe('payment_used')
  })
})

describe('a payment that cannot be read', () => {
  it.each([
    ['bad base64', '%%%', 'invalid_payload'],
    ['bad JSON', textToBase64('{'), 'invalid_payload'],
    ['too long', 'A'.repeat(12_289), 'payment_too_large'],
  ])('%s: 400 in one line, before anybody is asked', async (_, payment, code) => {
    const shop = checkout()
    const answer = answerIn(await shop.ask({ payment }))
    expect(answer.status).toBe(400)
    expect(answer.headers).toMatchObject({ 'Content-Type': 'application/json', 'Cache-Control': 'no-store' })
    expect(JSON.parse(answer.body)).toMatchObject({ x402Version: 2, code, error: expect.stringMatching(/^PAYMENT-SIGNATURE: [^\n]+$/) })
    expect(shop.facilitator.verified).toHaveLength(0)
  })

  it('a transaction that is none: 400 that names the field', async () => {
    const shop = checkout()
    const made = await payFor(shop)
    const broken = textToBase64(JSON.stringify({ ...made.payload, payload: { transaction: 'AAAA' } }))
    const answer = answerIn(await shop.ask({ payment: broken }))
    expect([answer.status, JSON.parse(answer.body)]).toMatchObject([400, { code: 'invalid_payload', error: expect.stringMatching(/transaction/) }])
  })
})

describe('a facilitator', () => {
  it('that lies about which payment it settled opens no door', async () => {
    for (const lie of [{ transaction: 'ad'.repeat(32) }, { transaction: '' }, { network: 'sion:ffff' as const }]) {
      const shop = checkout()
      const { header } = await payFor(shop)
      shop.facilitator.onSettle = async (payment) => ({ ...successFor(payment), ...lie })
      const answer = answerIn(await shop.ask({ payment: header }))
      expect([answer.status, answer.headers['Retry-After']]).toEqual([503, '2'])
      shop.facilitator.onSettle = undefined
      expect(paidIn(await shop.ask({ payment: header })).kind).toBe('paid')
    }
  })

  it.each<[string, unknown, string]>([
    ['is out of reach', new SionError('facilitator_unavailable', 'no answer'), 'settlement_pending'],
    ['loses its ledger', new SionError('ledger_unavailable', 'no node'), 'settlement_pending'],
    ['breaks', new TypeError('undefined is not a function at secret place'), 'facilitator_unavailable'],
    ['throws no error at all', 'text', 'facilitator_unavailable'],
  ])('that %s while settling: 503, and the same payment is good again', async (_, error, code) => {
    const shop = checkout()
    const { header } = await payFor(shop)
    shop.facilitator.onSettle = () => Promise.reject(error)
    const answer = answerIn(await shop.ask({ payment: header }))
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([503, code])
    expect(answer.headers).toMatchObject({ 'Retry-After': '2', 'Cache-Control': 'no-store' })
    expect(answer.headers).not.toHaveProperty('PAYMENT-REQUIRED')
    expect(answer.body).not.toContain('secret place')
    shop.facilitator.onSettle = undefined
    expect(paidIn(await shop.ask({ payment: header })).kind).toBe('paid')
  })

  it('that does not know the outcome yet: 503 settlement_pending, no fresh quote, and no other payment for this quote', async () => {
    const shop = checkout()
    const required = quoteIn(answerIn(await shop.ask()))
    const [first, second] = [pay(required), pay(required)]
    shop.facilitator.onSettle = async () => ({ success: false, errorReason: 'settlement_pending', payer: PAYER, transaction: '', network: 'sion:ab' })
    const answer = answerIn(await shop.ask({ payment: first.header }))
    expect([answer.status, settlementIn(answer).errorReason, codeIn(answer)]).toEqual([503, 'settlement_pending', 'settlement_pending'])
    expect(answer.headers['Retry-After']).toBe('2')
    expect(answer.headers).not.toHaveProperty('PAYMENT-REQUIRED')
    shop.facilitator.onSettle = undefined
    expect(codeIn(answerIn(await shop.ask({ payment: second.header })))).toBe('quote_bound')
    expect(paidIn(await shop.ask({ payment: first.header })).kind).toBe('paid')
  })

  it('that is away leaves priced routes closed, also where it alone knows the chain, and opens them when it is back', async () => {
    const facilitator = fakeFacilitator()
    facilitator.onSupported = () => Promise.reject(new SionError('facilitator_unavailable', 'connection refused'))
    const shop = checkout({ facilitator })
    const seller = createSeller({ payTo: PAYEE, store: shop.store, facilitator }, () => ({ verify: () => Promise.resolve(false) }))
    const route = seller.route('0.25')
    for (const payment of [undefined, (await payFor(shop)).header]) {
      const answer = answerIn(await askFor(route, payment === undefined ? {} : { payment }))
      expect([answer.status, JSON.parse(answer.body).code, answer.headers['Retry-After']]).toEqual([503, 'facilitator_unavailable', '2'])
    }
    await expect(seller.ready()).rejects.toMatchObject({ code: 'facilitator_unavailable' })
    facilitator.onSupported = undefined
    expect(answerIn(await askFor(route)).status).toBe(402)
    await seller.ready()
  })

  it('is asked once what chain it settles on, however many requests wait for it', async () => {
    const facilitator = fakeFacilitator()
    const supported = vi.spyOn(facilitator, 'supported')
    const seller = createSeller({ payTo: PAYEE, store: checkout().store, facilitator }, () => ({ verify: () => Promise.resolve(false) }))
    const route = seller.route('0.25')
    await Promise.all(Array.from({ length: 20 }, () => askFor(route)))
    expect(supported).toHaveBeenCalledTimes(1)
  })

  it('that settles on no network of ours fails the seller at start, by name, and keeps routes closed', async () => {
    const facilitator = fakeFacilitator()
    facilitator.onSupported = async () => ({ kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453' }], extensions: [], signers: {} })
    const options = { payTo: PAYEE, store: checkout().store, facilitator }
    const pinned = createSeller({ ...options, chain: CHAIN }, () => ({ verify: () => Promise.resolve(false) }))
    await expect(pinned.ready()).rejects.toThrow(`the facilitator does not settle exact on ${NETWORK}, but exact on eip155:8453`)
    const open = createSeller(options, () => ({ verify: () => Promise.resolve(false) }))
    await expect(open.ready()).rejects.toThrow(/does not settle exact on a sion network, but exact on eip155:8453/)
    expect(answerIn(await askFor(open.route('0.25'))).status).toBe(503)
  })
})

describe('a store that is out of reach', () => {
  it('closes priced routes, paid or not, before anything is accepted', async () => {
    const shop = checkout()
    const { header } = await payFor(shop)
    shop.store.beforeClaim = () => Promise.reject(new SionError('store_unavailable', 'connection refused'))
    const answer = answerIn(await shop.ask({ payment: header }))
    expect([answer.status, JSON.parse(answer.body).code, answer.headers['Retry-After']]).toEqual([503, 'store_unavailable', '2'])
    expect(shop.facilitator.settled).toHaveLength(0)
    shop.store.beforeClaim = undefined
    expect(paidIn(await shop.ask({ payment: header })).kind).toBe('paid')
  })

  it('closes routes from the start, and they open when it is back', async () => {
    const shop = checkout()
    const secret = vi.spyOn(shop.store, 'secret').mockRejectedValueOnce(new SionError('store_unavailable', 'connection refused'))
    expect([answerIn(await shop.ask()).status, answerIn(await shop.ask()).status]).toEqual([503, 402])
    expect(secret).toHaveBeenCalledTimes(2)
  })
})

describe('a seller that is set up wrongly', () => {
  const good = { payTo: PAYEE, chain: CHAIN, store: checkout().store, facilitator: fakeFacilitator() }
  const build = (options: object) => () => createSeller({ ...good, ...options }, () => ({ verify: () => Promise.resolve(false) }))

  it.each<[string, object, RegExp]>([
    ['an unknown option', { payto: PAYEE }, /^payto: not an option/],
    ['no payee', { payTo: undefined }, /^payTo: expected an id/],
    ['a wallet’s name for the payee', { payTo: 'carol' }, /^payTo: expected an id of 64 lower-case hex digits, not "carol"/],
    ['a chain in capitals', { chain: 'C0'.repeat(32) }, /^chain: expected an id/],
    ['no store', { store: undefined }, /^store: expected a store/],
    ['a store that is none', { store: new Map() }, /^store: expected a store/],
    ['an origin with a path', { origin: 'https://api.example.com/v1' }, /^origin: expected an origin/],
    ['an origin that is no address', { origin: 'api.example.com' }, /^origin: expected an origin/],
    ['an origin that is no text', { origin: 5 }, /^origin: expected an origin/],
    ['a facilitator that is no address', { facilitator: 'localhost' }, /^facilitator: expected an address/],
    ['a facilitator over another protocol', { facilitator: 'ftp://localhost' }, /^facilitator: expected an http or https address/],
    ['a facilitator that is none', { facilitator: {} }, /^facilitator: expected its address, or a facilitator, not an object/],
    ['a facilitator of null', { facilitator: null }, /^facilitator: .* not null/],
    ['a facilitator that is a number', { facilitator: 8405 }, /^facilitator: .* not a number/],
    ['a node that is no address', { facilitator: undefined, node: 'localhost' }, /^node: expected an address/],
    ['no time to settle', { settleWaitSeconds: 0 }, /^settleWaitSeconds: /],
    ['too much time to settle', { settleWaitSeconds: 61 }, /^settleWaitSeconds: /],
    ['a time to settle that is text', { settleWaitSeconds: '20' }, /^settleWaitSeconds: /],
    ['a time to settle that is no number', { settleWaitSeconds: Number.NaN }, /^settleWaitSeconds: /],
  ])('%s: is told so at once, by name', (_, options, message) => {
    expect(build(options)).toThrow(message)
  })

  it('no options at all: is told so', () => {
    // @ts-expect-error what plain JavaScript may give
    expect(() => createSeller(undefined, () => ({ verify: () => Promise.resolve(false) }))).toThrow(/^options: expected an object, not nothing/)
  })

  const seller = build({})()
  it.each<[string, unknown, RegExp]>([
    ['a price that is none', '0.0000001', /^price: .* 7 decimals/],
    ['a price that is a number', 0.25, /^price: expected USD as decimal text/],
    ['no price', undefined, /^price: expected USD as decimal text/],
    ['terms without a price', {}, /^price: expected USD as decimal text/],
    ['a price of zero', { price: '0' }, /^price: a price of 0 must be said as "free"/],
    ['unknown terms', { price: '1', mimetype: 'text/plain' }, /^mimetype: not one of a route’s terms/],
    ['a description that is no text', { price: '1', description: 5 }, /^description: expected text, not a number/],
  ])('%s: is told so when the route is built', (_, terms, message) => {
    expect(() => seller.route(terms as string)).toThrow(message)
  })
})
