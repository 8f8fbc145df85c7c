import type { RequestListener } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseUsd, textToBase64, type Id } from '../../src/codec/index.js'
import { memoryAttempts, settlementOf, type Quote } from '../../src/fetch/index.js'
import type { Wallet } from '../../src/sdk/index.js'
import { exactRequirements } from '../../src/x402/exact/terms.js'
import type { PaymentRequired, PaymentRequirements } from '../../src/x402/wire.js'
import { newWallet } from '../node/support.js'
import { startMarket, type Market } from '../support/market.js'

/** What a server asks, and what a buyer makes of it. The sellers here only ask, and note what they are sent. */
let market: Market
let buyer: Wallet
const payee = newWallet().id

beforeAll(async () => {
  market = await startMarket()
  buyer = await market.buyer()
})
afterAll(() => market.stop())

const nonce = '00ff'.repeat(8)

function terms(amount = 250_000n, chain: Id = market.node.chain): PaymentRequirements {
  return exactRequirements({ chain, payee, amount, nonce })
}

function quoteOf(...accepts: PaymentRequirements[]): PaymentRequired {
  return { x402Version: 2, resource: { url: '/x' }, accepts }
}

/** A server that answers every request with this quote, and 200 where there is a payment. */
async function asking(quote: unknown, raw?: string): Promise<{ url: string; payments: string[] }> {
  const payments: string[] = []
  const listener: RequestListener = (request, response) => {
    const payment = request.headers['payment-signature']
    if (typeof payment === 'string') {
      payments.push(payment)
      response.end('served')
      return
    }
    response.writeHead(402, { 'payment-required': raw ?? textToBase64(JSON.stringify(quote)) }).end('pay')
  }
  return { url: await market.listen(listener), payments }
}

describe('a cap', () => {
  it('on one request holds at equality, and not one micro-USD over', async () => {
    const pay = market.fetchOf(buyer, { maxPerRequest: '0.25' })
    const equal = await asking(quoteOf(terms(250_000n)))
    const over = await asking(quoteOf(terms(250_001n)))
    expect((await pay(equal.url)).status).toBe(200)
    await expect(pay(over.url)).rejects.toMatchObject({
      code: 'over_cap',
      message: 'the server asks 0.250001 USD, more than the 0.25 USD this client may pay',
    })
    expect([equal.payments.length, over.payments.length, pay.spent()]).toEqual([1, 0, 250_000n])
  })

  it('is 1 USD where nobody says otherwise', async () => {
    const pay = market.fetchOf(buyer)
    expect((await pay((await asking(quoteOf(terms(1_000_000n)))).url)).status).toBe(200)
    await expect(pay((await asking(quoteOf(terms(1_000_001n)))).url)).rejects.toMatchObject({ code: 'over_cap' })
  })

  it('on the total holds at equality, however many calls run at once', async () => {
    const pay = market.fetchOf(buyer, { maxTotal: '1' })
    const { url, payments } = await asking(quoteOf(terms(250_000n)))
    const results = await Promise.allSettled(Array.from({ length: 9 }, () => pay(url)))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(4)
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'over_total' })
    expect([payments.length, pay.spent()]).toEqual([4, 1_000_000n])
  })

  it('on a host leaves the others theirs, port by port', async () => {
    const pay = market.fetchOf(buyer, { maxPerHost: '0.5' })
    const [one, two] = [await asking(quoteOf(terms(250_000n))), await asking(quoteOf(terms(250_000n)))]
    await Promise.all([pay(one.url), pay(one.url)])
    await expect(pay(one.url)).rejects.toMatchObject({ code: 'over_total', message: expect.stringContaining(new URL(one.url).host) as unknown })
    expect((await pay(two.url)).status).toBe(200)
  })

  it.each(['', '-1', '1e3', '0.0000001', 'NaN', '1 USD'])('of %j is refused when the fetch is made', (cap) => {
    for (const name of ['maxPerRequest', 'maxTotal', 'maxPerHost']) {
      expect(() => market.fetchOf(buyer, { [name]: cap })).toThrow(expect.objectContaining({ code: 'invalid_input', field: name }) as Error)
    }
  })
})

describe('onQuote', () => {
  it('sees what is asked, and a text refuses it: nothing is signed and nothing counts as spent', async () => {
    const { url, payments } = await asking(quoteOf(terms()))
    const seen: Quote[] = []
    const pay = market.fetchOf(buyer, {
      onQuote: (quote) => {
        seen.push(quote)
        return 'too dear for me'
      },
    })
    await expect(pay(`${url}/x`)).rejects.toMatchObject({ code: 'quote_refused', message: 'too dear for me' })
    expect(seen).toMatchObject([{ url: `${url}/x`, amount: 250_000n, payee, scheme: 'exact', required: quoteOf(terms()) }])
    expect([payments, pay.spent()]).toEqual([[], 0n])
  })

  it('that throws, also later, pays nothing', async () => {
    const { url, payments } = await asking(quoteOf(terms()))
    const pay = market.fetchOf(buyer, { onQuote: () => Promise.reject(new Error('no')) })
    await expect(pay(url)).rejects.toThrow('no')
    expect([payments, pay.spent()]).toEqual([[], 0n])
  })

  it('is not asked about what is over a cap', async () => {
    let asked = 0
    const pay = market.fetchOf(buyer, { maxPerRequest: '0.1', onQuote: () => void asked++ })
    await expect(pay((await asking(quoteOf(terms()))).url)).rejects.toMatchObject({ code: 'over_cap' })
    expect(asked).toBe(0)
  })
})

describe('a 402 that is not x402', () => {
  it('is returned as it came', async () => {
    const url = await market.listen((_, response) => void response.writeHead(402, { 'x-own': 'yes' }).end('insert coin'))
    const response = await market.fetchOf(buyer)(url)
    expect([response.status, response.headers.get('x-own'), await response.text(), settlementOf(response)]).toEqual([402, 'yes', 'insert coin', undefined])
  })
})

describe('a quote that cannot be read', () => {
  const bad: [string, unknown, string?][] = [
    ['no base64', undefined, '{"x402Version":2}'],
    ['no JSON', undefined, textToBase64('{"x402Version":2,')],
    ['null', null],
    ['an array', []],
    ['version 1', { x402Version: 1, resource: { url: '/' }, accepts: [] }],
    ['no resource', { x402Version: 2, accepts: [] }],
    ['accepts that are none', { x402Version: 2, resource: { url: '/' }, accepts: {} }],
    ['an offer that is null', { x402Version: 2, resource: { url: '/' }, accepts: [null] }],
    ['a number for an amount', { x402Version: 2, resource: { url: '/' }, accepts: [{ ...exactRequirements({ chain: 'ab'.repeat(32), payee, amount: 1n, nonce }), amount: 1 }] }],
  ]

  it.each(bad)('%s', async (_, quote, raw) => {
    const { url, payments } = await asking(quote, raw)
    const pay = market.fetchOf(buyer)
    await expect(pay(url)).rejects.toMatchObject({ name: 'PaymentError', code: 'malformed_quote' })
    expect([payments, pay.spent()]).toEqual([[], 0n])
  })
})

describe('an offer is not taken', () => {
  const changed = (change: (offer: PaymentRequirements) => object) => () => {
    const offer = terms()
    return quoteOf({ ...offer, ...change(offer) } as PaymentRequirements)
  }
  const extra = (change: Record<string, unknown>) => changed((offer) => ({ extra: { ...offer.extra, ...change } }))
  const cases: [string, () => PaymentRequired][] = [
    // The network is the first half of the chain's identity: the whole of it must be the payer's chain.
    ['on another chain behind the same network', () => quoteOf(terms(250_000n, market.node.chain.slice(0, 32) + 'f'.repeat(32)))],
    ['on another network', () => quoteOf(terms(250_000n, 'ef'.repeat(32)))],
    ['with another purpose than the nonce’s', extra({ purpose: 'rent' })],
    ['with a purpose for another nonce', extra({ purpose: `x402:${'11'.repeat(16)}` })],
    ['without a nonce', extra({ nonce: undefined })],
    ['with a nonce of another form', extra({ nonce: nonce.toUpperCase(), purpose: `x402:${nonce.toUpperCase()}` })],
    ['in other decimals', extra({ decimals: 2 })],
    ['in another asset', changed(() => ({ asset: 'EUR' }))],
    ['by another scheme', changed(() => ({ scheme: 'upto' }))],
    ['to nobody', changed(() => ({ payTo: 'carol' }))],
    ['for nothing', changed(() => ({ amount: '0' }))],
    ['for an amount with a sign', changed(() => ({ amount: '-250000' }))],
    ['for an amount with a point', changed(() => ({ amount: '0.25' }))],
    ['for an amount with a leading zero', changed(() => ({ amount: '0250000' }))],
    ['for more than there is', changed(() => ({ amount: '9007199254740992' }))],
    ['where there is none', () => quoteOf()],
  ]

  it.each(cases)('%s', async (_, quote) => {
    const { url, payments } = await asking(quote())
    const pay = market.fetchOf(buyer, { maxPerRequest: '1000000', maxTotal: '1000000' })
    await expect(pay(url)).rejects.toMatchObject({ code: 'no_payable_offer' })
    expect([payments, pay.spent()]).toEqual([[], 0n])
  })

  it('but one further down the list is, and what the seller put beside it is echoed', async () => {
    const other = { ...terms(), network: 'eip155:8453', asset: '0xusdc' } as PaymentRequirements
    const ours = { ...terms(parseUsd('0.1', 'amount')), outputSchema: { note: 'ß' } }
    const { url, payments } = await asking(quoteOf(other, ours))
    expect((await market.fetchOf(buyer)(url)).status).toBe(200)
    expect(JSON.parse(Buffer.from(payments[0] ?? '', 'base64').toString())).toMatchObject({ x402Version: 2, accepted: ours })
  })
})

describe('after one payment', () => {
  it('a fresh 402 is handed over: no second payment, no loop', async () => {
    let asked = 0
    const quote = textToBase64(JSON.stringify(quoteOf(terms())))
    const url = await market.listen((_, response) => {
      asked++
      response.writeHead(402, { 'payment-required': quote }).end()
    })
    const pay = market.fetchOf(buyer)
    expect((await pay(url)).status).toBe(402)
    expect([asked, pay.spent()]).toEqual([2, 250_000n])
  })

  it('a 503 without a word on the payment is tried again twice, with the same payment, and handed over', async () => {
    const payments: string[] = []
    const quote = textToBase64(JSON.stringify(quoteOf(terms())))
    const url = await market.listen((request, response) => {
      const payment = request.headers['payment-signature']
      if (typeof payment !== 'string') return response.writeHead(402, { 'payment-required': quote }).end()
      payments.push(payment)
      return response.writeHead(503, { 'retry-after': '0' }).end()
    })
    const pay = market.fetchOf(buyer)
    expect((await pay(url)).status).toBe(503)
    expect((await pay(url)).status).toBe(503)
    expect([payments.length, new Set(payments).size, pay.spent()]).toEqual([6, 1, 250_000n])
  })

  it('a lower cap is kept also for a payment that was signed before under a higher one', async () => {
    const quote = textToBase64(JSON.stringify(quoteOf(terms())))
    const payments: string[] = []
    const url = await market.listen((request, response) => {
      const payment = request.headers['payment-signature']
      if (typeof payment !== 'string') return response.writeHead(402, { 'payment-required': quote }).end()
      return response.writeHead(payments.push(payment) === 1 ? 500 : 200).end()
    })
    const attempts = memoryAttempts()
    const cappedAt = (maxPerRequest: string) => market.fetchOf(buyer, { attempts, maxPerRequest })(url)
    expect((await cappedAt('0.25')).status).toBe(500)
    await expect(cappedAt('0.249999')).rejects.toMatchObject({ code: 'over_cap', message: expect.stringMatching(/earlier payment .* 0\.25 USD/) as unknown })
    expect((await cappedAt('0.25')).status).toBe(200)
    expect([payments.length, new Set(payments).size]).toEqual([2, 1])
  })

  it('a 429 of something in between leaves the payment good for the next same call', async () => {
    const payments: string[] = []
    const quote = textToBase64(JSON.stringify(quoteOf(terms())))
    const url = await market.listen((request, response) => {
      const payment = request.headers['payment-signature']
      if (typeof payment !== 'string') return response.writeHead(402, { 'payment-required': quote }).end()
      return response.writeHead(payments.push(payment) === 1 ? 429 : 200).end()
    })
    const pay = market.fetchOf(buyer)
    expect([(await pay(url)).status, (await pay(url)).status]).toEqual([429, 200])
    expect([new Set(payments).size, pay.spent()]).toEqual([1, 250_000n])
  })
})
