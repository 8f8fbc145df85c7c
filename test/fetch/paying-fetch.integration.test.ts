import express from 'express'
import { Hono } from 'hono'
import { getRequestListener } from '@hono/node-server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { base64ToText, parseUsd } from '../../src/codec/index.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'
import { settlementOf } from '../../src/fetch/index.js'
import { paywall as honoPaywall } from '../../src/hono/index.js'
import { buildTransaction, devnetWallet, submitAndWait, signTransaction, createNodeClient, type Wallet } from '../../src/sdk/index.js'
import { createLightClient, httpTransport } from '../../src/light/index.js'
import { memoryNonceStore } from '../../src/x402/stores/memory.js'
import { newWallet } from '../node/support.js'
import { cuttingProxy, expressSeller, startMarket, type Market, type TestSeller } from '../support/market.js'

/** A devnet, sellers on Express and Hono, and a buyer's fetch between them: all of it real, over loopback. */
let market: Market
let seller: TestSeller
/** A buyer whose keys the ledger knows. */
let buyer: Wallet

const PRICE = parseUsd('0.25', 'price')
const FEE = 1_100n

beforeAll(async () => {
  market = await startMarket()
  seller = await expressSeller(market, (app, charge) => {
    let failures = 0
    let runs = 0
    app.get('/report', charge('0.25'), (_, response) => void response.json({ report: 'good', runs: ++runs }))
    app.get('/moved', charge('0.25'), (_, response) => response.redirect('/landing'))
    app.get('/landing', (request, response) => void response.json({ landed: true, paid: request.get('payment-signature') ?? null }))
    app.get('/to-report', (_, response) => response.redirect('/report'))
    app.post('/to-echo', (_, response) => response.redirect(303, '/report'))
    app.post('/echo', express.raw({ type: () => true }), charge('0.01'), (request, response) => {
      const body: unknown = request.body
      response.json({ type: request.get('content-type') ?? null, body: Buffer.isBuffer(body) ? body.toString('base64') : null })
    })
    app.get('/shaky', charge('0.25'), (_, response) => {
      if (failures++ === 0) throw new Error('the handler fails once')
      response.json({ after: failures })
    })
    app.use((_: unknown, __: express.Request, response: express.Response, ___: express.NextFunction) => void response.status(500).json({ error: 'failed' }))
  })
  buyer = await market.buyer()
  expect((await market.fetchOf(buyer)(`${seller.url}/report`)).status).toBe(200)
})

afterAll(() => market.stop())

/** What a call moves: micro-USD that left the buyer, and payments the seller got. */
async function moved<T>(work: () => Promise<T>, from = buyer, to = seller): Promise<{ value: T; debit: bigint; payments: number }> {
  const [balance, before] = [await market.balance(from.account), await market.received(to.payee)]
  const value = await work()
  return {
    value,
    debit: balance - (await market.balance(from.account)),
    payments: (await market.received(to.payee)).payments - before.payments,
  }
}

describe('a purchase', () => {
  it('is the ordinary Response, with the settlement beside it and one debit of price and fee', async () => {
    const pay = market.fetchOf(buyer)
    const { value, debit, payments } = await moved(() => pay(`${seller.url}/report`))
    expect(value.status).toBe(200)
    expect(await value.json()).toMatchObject({ report: 'good' })
    expect(value.headers.get('cache-control')).toBe('private')
    expect(settlementOf(value)).toMatchObject({ success: true, payer: buyer.account, network: market.node.network })
    expect(settlementOf(value)?.transaction).toMatch(/^[0-9a-f]{64}$/)
    expect({ debit, payments, spent: pay.spent() }).toEqual({ debit: PRICE + FEE, payments: 1, spent: PRICE })
  })

  it('works the same with Hono', async () => {
    const app = new Hono()
    const payee = newWallet().id
    const charge = honoPaywall({ payTo: payee, store: memoryNonceStore(), node: market.node.url, chain: market.node.chain, signatures: inlineSignatures })
    app.get('/h', charge('0.5'), (c) => c.json({ hono: true }))
    const url = await market.listen(getRequestListener(app.fetch))
    const response = await market.fetchOf(buyer)(`${url}/h`)
    expect([response.status, await response.json(), settlementOf(response)?.success]).toEqual([200, { hono: true }, true])
    expect(await market.received(payee)).toEqual({ payments: 1, amount: 500_000n })
    await charge.close()
  })

  it('does not happen where nothing is asked', async () => {
    const pay = market.fetchOf(buyer)
    expect((await pay(`${seller.url}/landing`)).status).toBe(200)
    expect((await pay(`${seller.url}/nothing`)).status).toBe(404)
    expect(pay.spent()).toBe(0n)
  })

  it('made twice at once is two purchases', async () => {
    const pay = market.fetchOf(buyer)
    const { value, payments } = await moved(() => Promise.all([1, 2].map(async () => (await pay(`${seller.url}/report`)).json() as Promise<{ runs: number }>)))
    expect(payments).toBe(2)
    expect(value[0]?.runs).not.toBe(value[1]?.runs)
  })
})

describe('bodies are sent again as they were', () => {
  const form = (): FormData => {
    const data = new FormData()
    data.set('name', 'zoë 🦉')
    data.set('file', new Blob([Uint8Array.of(0, 255, 13, 10)]), 'f.bin')
    return data
  }
  const stream = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start(controller) {
        for (const part of ['one ', 'two ', 'three']) controller.enqueue(new TextEncoder().encode(part))
        controller.close()
      },
    })
  const bodies: [string, () => RequestInit, RegExp | null, string | RegExp][] = [
    ['a string', () => ({ body: 'plain 🦉' }), /^text\/plain/, 'plain 🦉'],
    ['JSON', () => ({ body: JSON.stringify({ a: [1, 'ß'] }), headers: { 'content-type': 'application/json' } }), /^application\/json$/, '{"a":[1,"ß"]}'],
    ['URLSearchParams', () => ({ body: new URLSearchParams({ q: 'a b&c' }) }), /^application\/x-www-form-urlencoded/, 'q=a+b%26c'],
    ['FormData', () => ({ body: form() }), /^multipart\/form-data; boundary=/, /zoë 🦉[\s\S]*f\.bin/],
    ['a Blob', () => ({ body: new Blob(['blob'], { type: 'text/x-blob' }) }), /^text\/x-blob$/, 'blob'],
    ['bytes', () => ({ body: Uint8Array.of(98, 121, 116, 101, 115) }), null, 'bytes'],
    ['a stream', () => ({ body: stream() }), null, 'one two three'],
  ]

  it.each(bodies)('%s', async (_, init, type, expected) => {
    const pay = market.fetchOf(buyer)
    const response = await pay(`${seller.url}/echo`, { method: 'POST', ...init() })
    const echoed = (await response.json()) as { type: string | null; body: string }
    expect(response.status).toBe(200)
    if (type === null) expect(echoed.type).toBeNull()
    else expect(echoed.type).toMatch(type)
    const text = Buffer.from(echoed.body, 'base64').toString()
    if (typeof expected === 'string') expect(text).toBe(expected)
    else expect(text).toMatch(expected)
    if (type?.test('multipart/form-data; boundary=')) expect(text).toContain(/boundary=(.*)$/.exec(echoed.type ?? '')?.[1])
  })

  it('a Request, with its headers', async () => {
    const request = new Request(`${seller.url}/echo`, { method: 'POST', body: 'of a request', headers: { 'content-type': 'text/x-own' } })
    const response = await market.fetchOf(buyer)(request)
    expect(await response.json()).toEqual({ type: 'text/x-own', body: Buffer.from('of a request').toString('base64') })
  })
})

describe('redirects', () => {
  it('to another origin that asks for money are refused before anything is signed', async () => {
    const url = await market.listen((_, response) => void response.writeHead(302, { location: `${seller.url}/report` }).end())
    const pay = market.fetchOf(buyer)
    await expect(pay(`${url}/a`)).rejects.toMatchObject({ code: 'redirected' })
    expect(pay.spent()).toBe(0n)
  })

  it('within an origin lead to the quote, and the payment goes straight there', async () => {
    const response = await market.fetchOf(buyer)(`${seller.url}/to-report`)
    expect([response.status, settlementOf(response)?.success]).toEqual([200, true])
  })

  it('of a POST that became another request are not paid', async () => {
    await expect(market.fetchOf(buyer)(`${seller.url}/to-echo`, { method: 'POST', body: 'x' })).rejects.toMatchObject({ code: 'redirected' })
  })

  it('that were bought are followed without the payment, and the settlement stays beside the response', async () => {
    const response = await market.fetchOf(buyer)(`${seller.url}/moved`)
    expect(await response.json()).toEqual({ landed: true, paid: null })
    expect(settlementOf(response)).toMatchObject({ success: true })
  })

  it('that were bought and lead elsewhere take neither payment nor credentials along', async () => {
    let seen: NodeJS.Dict<string | string[]> = {}
    const elsewhere = await market.listen((request, response) => {
      seen = request.headers
      response.end('elsewhere')
    })
    const away = await expressSeller(market, (app, charge) => void app.get('/away', charge('0.01'), (_, response) => response.redirect(307, `${elsewhere}/x`)))
    const response = await market.fetchOf(buyer)(`${away.url}/away`, { headers: { authorization: 'Bearer secret', 'x-own': '1' } })
    expect(await response.text()).toBe('elsewhere')
    expect([seen['payment-signature'], seen['authorization'], seen['x-own']]).toEqual([undefined, undefined, '1'])
  })

  it('are handed over where the caller follows them itself', async () => {
    const response = await market.fetchOf(buyer)(`${seller.url}/moved`, { redirect: 'manual' })
    expect([response.status, response.headers.get('location'), settlementOf(response)?.success]).toEqual([302, '/landing', true])
  })
})

describe('a connection that is lost', () => {
  it('before the server has the payment: the same payment is sent again and served', async () => {
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ x: 1 })))
    const proxy = await cuttingProxy(market, shop.url)
    proxy.cutRequests = 1
    const { value, payments } = await moved(() => market.fetchOf(buyer)(`${proxy.url}/x`), buyer, shop)
    expect([value.status, payments, new Set(proxy.payments).size, proxy.payments.length]).toEqual([200, 1, 1, 2])
  })

  it('after the answer had left the server: the server says that the payment is used, and no other is signed', async () => {
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ x: 1 })))
    const proxy = await cuttingProxy(market, shop.url)
    proxy.cutAnswers = 1
    const pay = market.fetchOf(buyer)
    const { value, payments } = await moved(() => pay(`${proxy.url}/x`), buyer, shop)
    expect([value.status, payments, new Set(proxy.payments).size, proxy.payments.length]).toEqual([402, 1, 1, 2])
    expect(settlementOf(value)).toMatchObject({ success: false, extensions: { sion: { code: 'payment_used' } } })
    expect(pay.spent()).toBe(PRICE)
  })

  it('while the handler runs: its answer goes nowhere, so the payment stays good and is served when it comes again', async () => {
    let runs = 0
    const shaky = await expressSeller(market, (app, charge) => {
      app.get('/slow', charge('0.25'), (request, response) => {
        if (++runs === 1) request.socket.destroy()
        else response.json({ runs })
      })
    })
    const { value, payments } = await moved(() => market.fetchOf(buyer)(`${shaky.url}/slow`), buyer, shaky)
    expect([value.status, await value.json(), payments]).toEqual([200, { runs: 2 }, 1])
  })

  it('for longer than patience: the outcome is unknown, and the next same call goes on with the same payment', async () => {
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ x: 1 })))
    const proxy = await cuttingProxy(market, shop.url)
    proxy.cutRequests = 2
    const pay = market.fetchOf(buyer, { patienceSeconds: 0 })
    const { value, payments } = await moved(
      async () => {
        const both = await Promise.allSettled([pay(`${proxy.url}/x`), pay(`${proxy.url}/x`)])
        expect(both).toMatchObject([1, 2].map(() => ({ status: 'rejected', reason: { code: 'outcome_unknown' } })))
        // Another call is another payment.
        expect((await pay(`${proxy.url}/x?other`)).status).toBe(200)
        return [await pay(`${proxy.url}/x`), await pay(`${proxy.url}/x`)]
      },
      buyer,
      shop,
    )
    expect(value.map(({ status }) => status)).toEqual([200, 200])
    expect({ payments, spent: pay.spent() }).toEqual({ payments: 3, spent: 3n * PRICE })
    expect(proxy.payments.slice(0, 2).sort()).toEqual(proxy.payments.slice(3).sort())
  })

  it('is not the end of it when the handler failed: the 500 is returned, the next same call pays with the same payment', async () => {
    const pay = market.fetchOf(buyer)
    const { value, payments } = await moved(async () => [await pay(`${seller.url}/shaky`), await pay(`${seller.url}/shaky`)])
    expect(value.map(({ status }) => status)).toEqual([500, 200])
    expect({ payments, spent: pay.spent() }).toEqual({ payments: 1, spent: PRICE })
  })
})

describe('an abort', () => {
  it('before the answer ends the call with the signal’s reason; the same call goes on with the same payment', async () => {
    const controller = new AbortController()
    const reason = new Error('had enough')
    let runs = 0
    const shop = await expressSeller(market, (app, charge) => {
      app.get('/x', charge('0.25'), (_, response) => {
        if (++runs === 1) controller.abort(reason)
        else response.json({ runs })
      })
    })
    const pay = market.fetchOf(buyer)
    const { value, payments } = await moved(
      async () => {
        await expect(pay(`${shop.url}/x`, { signal: controller.signal })).rejects.toBe(reason)
        return pay(`${shop.url}/x`)
      },
      buyer,
      shop,
    )
    expect([value.status, payments]).toEqual([200, 1])
  })

  it('while it waits to send again does not wait for the end of the pause', async () => {
    const controller = new AbortController()
    let asked = 0
    const url = await market.listen((request, response) => {
      if (request.headers['payment-signature'] === undefined) return passOn()
      asked++
      setTimeout(() => controller.abort(), 10)
      response.writeHead(503, { 'retry-after': '10' }).end()
      function passOn(): void {
        void fetch(`${seller.url}/report`).then(async (quote) => {
          response.writeHead(402, { 'payment-required': quote.headers.get('payment-required') ?? '' }).end(await quote.text())
        })
      }
    })
    const began = performance.now()
    await expect(market.fetchOf(buyer)(`${url}/report`, { signal: controller.signal })).rejects.toMatchObject({ name: 'AbortError' })
    expect(asked).toBe(1)
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  it('before the first request sends nothing', async () => {
    await expect(market.fetchOf(buyer)(`${seller.url}/report`, { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' })
  })
})

describe('a payment header', () => {
  async function headersOf(wallet: Wallet, options: { maxHeaderSize?: number; path?: string } = {}) {
    const shop = await expressSeller(
      market,
      (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.json({ x: 1 })),
      options.maxHeaderSize === undefined ? {} : { maxHeaderSize: options.maxHeaderSize },
    )
    const sent: string[] = []
    const pay = market.fetchOf(wallet, {
      fetch: (input, init) => {
        const header = new Request(input, init).headers.get('payment-signature')
        if (header !== null) sent.push(header)
        return fetch(input, init)
      },
    })
    const { value, payments } = await moved(() => pay(shop.url + (options.path ?? '/x')), wallet, shop)
    return { status: value.status, payments, sent }
  }
  const payloadOf = (header: string | undefined) => (JSON.parse(base64ToText(header, 'header')) as { payload: { transaction?: string; digest?: string } }).payload

  it('is under 8.2 kB the first time, and under 6.5 kB once the ledger knows the payer’s keys', async () => {
    const wallet = await market.buyer()
    const first = await headersOf(wallet)
    const second = await headersOf(wallet)
    for (const { status, payments, sent } of [first, second]) expect([status, payments, sent.length]).toEqual([200, 1, 1])
    expect(payloadOf(first.sent[0]).transaction).toBeDefined()
    // The whole line is what nginx has a buffer of 8,192 bytes for.
    expect('PAYMENT-SIGNATURE: \r\n'.length + (first.sent[0]?.length ?? 0)).toBeLessThanOrEqual(8_192)
    expect(second.sent[0]?.length).toBeLessThan(6_500)
  })

  it('that a server on the way finds too long goes by reference, with the same transaction', async () => {
    const wallet = await market.buyer()
    const { status, payments, sent } = await headersOf(wallet, { maxHeaderSize: 6_800 })
    expect([status, payments, sent.length]).toEqual([200, 1, 2])
    expect(payloadOf(sent[0]).transaction).toBeDefined()
    expect(payloadOf(sent[1])).toMatchObject({ digest: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown })
  })

  it('that no form of it passes costs nothing: the 431 is returned and nothing was submitted', async () => {
    const { status, payments, sent } = await headersOf(buyer, { maxHeaderSize: 4_000 })
    expect([status, payments, sent.length]).toEqual([431, 0, 1])
  })

  it('of an account that is dual goes by reference', async () => {
    const wallet = await market.buyer()
    const transport = httpTransport(market.node.url)
    const ledger = { client: createLightClient({ transport, chain: market.node.chain }), node: createNodeClient(transport) }
    const body = buildTransaction({ kind: 'setDual', dual: true }, { wallet, chain: market.node.chain, pulse: (await market.api.status()).certified_pulse })
    const made = await submitAndWait(ledger, await signTransaction(wallet, body, { keysKnown: false, dual: false }))
    expect(made.kind).toBe('settled')
    const { status, payments, sent } = await headersOf(wallet)
    expect([status, payments, sent.length]).toEqual([200, 1, 1])
    expect(payloadOf(sent[0]).digest).toBeDefined()
    expect(sent[0]?.length).toBeLessThan(6_500)
  })
})

describe('what the ledger says no to', () => {
  it('is a 402 with the reason, and nothing is paid', async () => {
    const poor = await market.buyer('0.1')
    const pay = market.fetchOf(poor)
    const response = await pay(`${seller.url}/report`)
    expect(response.status).toBe(402)
    expect(settlementOf(response)).toMatchObject({ success: false, extensions: { sion: { code: 'insufficient_funds' } } })
    expect(await market.balance(poor.account)).toBe(100_000n)
  })

  it('is a PaymentError where the payer submits it itself', async () => {
    const poor = await market.buyer('0.1')
    const shop = await expressSeller(market, (app, charge) => void app.get('/x', charge('0.25'), (_, response) => void response.end()), { maxHeaderSize: 6_800 })
    await expect(market.fetchOf(poor)(`${shop.url}/x`)).rejects.toMatchObject({ code: 'transaction_refused' })
  })

  it('cannot be asked of a node that is away: nothing is paid', async () => {
    const pay = market.fetchOf(devnetWallet('nobody'), { node: 'http://127.0.0.1:9' })
    await expect(pay(`${seller.url}/report`)).rejects.toMatchObject({ code: 'ledger_unavailable' })
    expect(pay.spent()).toBe(0n)
  })
})
