import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RequestHandler } from 'express'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { DeskStore } from '../../src/desk/index.js'
import { payingFetch, PaymentError, settlementOf, type Payment, type PayingFetchOptions, type Quote } from '../../src/fetch/index.js'
import { readStream, type StreamPayer } from '../../src/sdk/index.js'
import { decodePayment } from '../../src/x402/headers.js'
import { cuttingProxy, expressSeller, startMarket, type Market, type TestSeller } from '../support/market.js'
import { sellerStreams, streamBuyer, type StreamBuyer } from '../support/stream-buyer.js'

let market: Market
let buyer: StreamBuyer
beforeAll(async () => {
  market = await startMarket()
  buyer = await streamBuyer(market)
})
afterAll(() => market.stop())

interface Shop extends TestSeller {
  /** Requests as they came: with the position that they paid, if any. */
  readonly seen: (number | 'unpaid')[]
  /** What the handler served. */
  readonly served: number[]
  store: DeskStore
}

/** A seller of one price for `/thing`, whose handler does as `handler` says. */
async function shop({ window = 0, price = '0.001', handler }: { window?: number; price?: string | (() => string); handler?: RequestHandler } = {}): Promise<Shop> {
  const streams = await sellerStreams(market, { window })
  const seen: Shop['seen'] = []
  const served: number[] = []
  const seller = await expressSeller(
    market,
    (app, charge) => {
      app.use((request, _response, next) => {
        const header = request.get('payment-signature')
        seen.push(header === undefined ? 'unpaid' : Number(decodePayment(header).payload['position']))
        next()
      })
      app.all('/thing', charge({ price }), (request, response, next) => {
        const header = request.get('payment-signature')
        if (header !== undefined) served.push(Number(decodePayment(header).payload['position']))
        if (handler !== undefined) return handler(request, response, next)
        response.json({ thing: served.length })
      })
      app.get('/other', (_request, response) => void response.redirect('/thing'))
    },
    { streams },
  )
  await market.api.fund(seller.payee, '1')
  return { ...seller, seen, served, store: streams.store }
}

async function buying(seller: Pick<Shop, 'payee'>, options: Partial<PayingFetchOptions> & { escrow?: bigint } = {}): Promise<{ pay: ReturnType<typeof payingFetch>; payer: StreamPayer; payments: Payment[]; quotes: Quote[] }> {
  const { escrow, ...more } = options
  const payer = await buyer.payer(await buyer.open(seller.payee, escrow === undefined ? {} : { escrow }))
  const payments: Payment[] = []
  const quotes: Quote[] = []
  const pay = payingFetch({
    stream: payer,
    node: 'http://127.0.0.1:9',
    onPayment: (payment) => void payments.push(payment),
    onQuote: (quote) => void quotes.push(quote),
    ...more,
  })
  return { pay, payer, payments, quotes }
}

async function closedPort(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}/`
}

async function errorOf(failing: Promise<unknown>): Promise<PaymentError> {
  const error: unknown = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof PaymentError) return error
  throw new Error(`no PaymentError: ${String(error)}`, { cause: error })
}

describe('payingFetch from a stream', () => {
  it('learns the price once and pays every later request up front, without a node', async () => {
    const seller = await shop()
    const { pay, payments, quotes, payer } = await buying(seller)
    for (let i = 1; i <= 5; i++) {
      const response = await pay(`${seller.url}/thing`)
      expect(await response.json()).toEqual({ thing: i })
      expect(settlementOf(response)).toMatchObject({
        success: true,
        transaction: '',
        payer: buyer.wallet.account,
        network: `sion:${market.node.chain.slice(0, 32)}`,
        extensions: { sion: { stream: payer.terms.stream, position: i } },
      })
    }
    expect(seller.seen).toEqual(['unpaid', 1, 2, 3, 4, 5])
    expect(quotes.map(({ scheme, amount }) => [scheme, amount])).toEqual([['stream', 1_000n]])
    expect(payments[4]).toEqual({ stream: payer.terms.stream, position: 5, amount: 1_000n, payee: seller.payee, url: `${seller.url}/thing` })
    expect(pay.spent()).toBe(5_000n)
  })

  it('knows prices by method and URL', async () => {
    const seller = await shop()
    const { pay } = await buying(seller)
    await pay(`${seller.url}/thing`)
    await pay(`${seller.url}/thing#here`)
    await pay(`${seller.url}/thing?of=two`)
    await pay(`${seller.url}/thing`, { method: 'POST', body: 'x' })
    await pay(`${seller.url}/thing`, { method: 'POST', body: 'y' })
    expect(seller.seen).toEqual(['unpaid', 1, 2, 'unpaid', 3, 'unpaid', 4, 5])
  })

  it('sends the body along every time', async () => {
    const seller = await shop({ handler: (request, response) => void request.pipe(response) })
    const { pay } = await buying(seller)
    for (const text of ['one', 'two']) {
      const response = await pay(`${seller.url}/thing`, { method: 'POST', body: text })
      expect(await response.text()).toBe(text)
    }
  })

  it('asks once for a hundred calls at once, and pays them one after the other where there is no window', async () => {
    const seller = await shop()
    const { pay, payer } = await buying(seller)
    const responses = await Promise.all(Array.from({ length: 100 }, () => pay(`${seller.url}/thing`)))
    expect(responses.every(({ status }) => status === 200)).toBe(true)
    expect(seller.seen).toEqual(['unpaid', ...Array.from({ length: 100 }, (_, i) => i + 1)])
    expect(payer.position).toEqual({ used: 100, revealed: 100 })
  })

  it('has calls in flight together where a window is offered, with no refusal', async () => {
    let flying = 0
    let most = 0
    const seller = await shop({
      window: 32,
      handler: (_request, response) => {
        most = Math.max(most, ++flying)
        setTimeout(() => {
          flying--
          response.json({})
        }, 5)
      },
    })
    const { pay } = await buying(seller)
    const calls = Array.from({ length: 32 }, async () => {
      for (let i = 0; i < 10; i++) expect((await pay(`${seller.url}/thing`)).status).toBe(200)
    })
    await Promise.all(calls)
    expect(most).toBeGreaterThan(4)
    expect(seller.seen.length).toBe(321)
    expect(seller.served.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 320 }, (_, i) => i + 1))
  })

  it('covers a price of several steps with one element', async () => {
    const seller = await shop({ price: '0.007' })
    const { pay } = await buying(seller)
    for (let i = 0; i < 3; i++) await pay(`${seller.url}/thing`)
    expect(seller.served).toEqual([7, 14, 21])
  })

  it('follows a redirect within the origin, and pays where it leads', async () => {
    const seller = await shop()
    const { pay } = await buying(seller)
    expect((await pay(`${seller.url}/other`)).status).toBe(200)
    expect((await pay(`${seller.url}/other`)).status).toBe(200)
    expect(seller.served).toEqual([1, 2])
  })

  it('never pays at another origin than the one that was called', async () => {
    const seller = await shop()
    const elsewhere = await market.listen((_request, response) => void response.writeHead(302, { location: `${seller.url}/thing` }).end())
    const { pay, payments } = await buying(seller)
    expect((await errorOf(pay(`${elsewhere}/x`))).code).toBe('redirected')
    expect(payments).toEqual([])
  })

  it('asks again once a route has become free', async () => {
    let price = '0.001'
    const seller = await shop({ price: () => price })
    const { pay, payer } = await buying(seller)
    await pay(`${seller.url}/thing`)
    price = 'free'
    for (let i = 0; i < 3; i++) expect((await pay(`${seller.url}/thing`)).status).toBe(200)
    expect(seller.seen).toEqual(['unpaid', 1, 2, 'unpaid', 'unpaid'])
    // Nobody took the second step: it is still good.
    price = '0.001'
    await pay(`${seller.url}/thing`)
    expect(payer.position).toEqual({ used: 2, revealed: 2 })
  })

  it('pays with the wallet where the stream cannot', async () => {
    const [seller, other] = [await shop(), await shop({ price: '0.0005' })]
    const { pay } = await buying(seller, { wallet: buyer.wallet, node: market.node.url })
    const response = await pay(`${other.url}/thing`)
    expect(response.status).toBe(200)
    expect(settlementOf(response)?.transaction).toMatch(/^[0-9a-f]{64}$/)
    await pay(`${seller.url}/thing`)
    expect(seller.served).toEqual([1])
  })
})

describe('a call that the stream cannot pay', () => {
  it('says so where another is paid, and sends nothing', async () => {
    const [seller, other] = [await shop(), await shop()]
    const { pay, payments } = await buying(seller)
    const error = await errorOf(pay(`${other.url}/thing`))
    expect([error.code, error.message]).toEqual(['no_payable_offer', expect.stringMatching(new RegExp(`^the server is paid at ${other.payee}, and stream [0-9a-f]{8} pays ${seller.payee}$`))])
    expect(payments).toEqual([])
  })

  it('says so where the price is no whole number of steps', async () => {
    const seller = await shop({ price: '0.0015' })
    const { pay } = await buying(seller)
    expect((await errorOf(pay(`${seller.url}/thing`))).message).toMatch(/0\.0015 USD is no whole number of stream [0-9a-f]{8}'s steps of 0\.001 USD/)
  })

  it('says so where only transfers are taken', async () => {
    const seller = await expressSeller(market, (app, charge) => app.get('/thing', charge('0.001'), (_request, response) => void response.json({})))
    const { pay } = await buying(await shop())
    expect((await errorOf(pay(`${seller.url}/thing`))).message).toMatch(/does not take streams on sion:[0-9a-f]{32}; it offers exact on sion:/)
  })

  it('costs more than one request may: over_cap, before anything is revealed', async () => {
    const seller = await shop({ price: '0.002' })
    const { pay, payer } = await buying(seller, { maxPerRequest: '0.001999' })
    expect((await errorOf(pay(`${seller.url}/thing`))).code).toBe('over_cap')
    expect(payer.position.revealed).toBe(0)
  })

  it('comes after the total is spent: over_total, at exactly that', async () => {
    const seller = await shop()
    const { pay } = await buying(seller, { maxTotal: '0.003' })
    for (let i = 0; i < 3; i++) await pay(`${seller.url}/thing`)
    expect((await errorOf(pay(`${seller.url}/thing`))).code).toBe('over_total')
    expect(seller.served).toEqual([1, 2, 3])
  })

  it('comes after the escrow is used up', async () => {
    const seller = await shop()
    const { pay } = await buying(seller, { escrow: 2_000n })
    for (let i = 0; i < 2; i++) await pay(`${seller.url}/thing`)
    const error = await errorOf(pay(`${seller.url}/thing`))
    expect([error.code, error.message]).toEqual(['insufficient_escrow', expect.stringContaining('top it up: sion stream top-up')])
    expect(seller.seen).toEqual(['unpaid', 1, 2])
  })

  it('is refused by whoever looks at the quote', async () => {
    const seller = await shop()
    const { pay } = await buying(seller, { onQuote: () => 'too dear' })
    const error = await errorOf(pay(`${seller.url}/thing`))
    expect([error.code, error.message]).toEqual(['quote_refused', 'too dear'])
  })

  it('has no payer at all: an InputError at once', () => {
    expect(() => payingFetch({})).toThrow('wallet: who pays?')
  })
})

describe('a handler that fails', () => {
  it('leaves the buyer its steps, and costs nothing more', async () => {
    let fail = true
    const seller = await shop({ handler: (_request, response) => void response.status(fail ? 500 : 200).json({}) })
    const { pay, payer } = await buying(seller)
    expect((await pay(`${seller.url}/thing`)).status).toBe(500)
    expect((await pay(`${seller.url}/thing`)).status).toBe(500)
    fail = false
    expect((await pay(`${seller.url}/thing`)).status).toBe(200)
    expect(seller.seen).toEqual(['unpaid', 1, 1, 1])
    expect(payer.position).toEqual({ used: 1, revealed: 1 })
    expect(pay.spent()).toBe(1_000n)
  })

  it('with a 503 of its own is not asked again and again', async () => {
    const seller = await shop({ handler: (_request, response) => void response.status(503).json({}) })
    const { pay } = await buying(seller)
    expect((await pay(`${seller.url}/thing`)).status).toBe(503)
    expect(seller.seen).toEqual(['unpaid', 1])
  })
})

describe('a connection that breaks', () => {
  it('before the seller took the payment: the same payment once more', async () => {
    const seller = await shop()
    const proxy = await cuttingProxy(market, seller.url)
    const { pay } = await buying(seller)
    await pay(`${proxy.url}/thing`)
    proxy.cutRequests = 1
    expect((await pay(`${proxy.url}/thing`)).status).toBe(200)
    expect(seller.served).toEqual([1, 2])
    expect(proxy.payments.length).toBe(3)
    expect(proxy.payments[1]).toBe(proxy.payments[2])
  })

  it('with the answer: the step is paid, the call says so, and the next one pays for another without a refusal', async () => {
    const seller = await shop()
    const proxy = await cuttingProxy(market, seller.url)
    const { pay, payer } = await buying(seller)
    await pay(`${proxy.url}/thing`)
    proxy.cutAnswers = 1
    const error = await errorOf(pay(`${proxy.url}/thing`))
    expect([error.code, error.message]).toEqual([
      'answer_lost',
      expect.stringMatching(/^position 2 of stream [0-9a-f]{8} was paid for this call, and the answer was lost on the way; make the call again/),
    ])
    expect((await pay(`${proxy.url}/thing`)).status).toBe(200)
    expect(seller.seen).toEqual(['unpaid', 1, 2, 2, 3])
    expect(payer.position).toEqual({ used: 3, revealed: 3 })
  })

  it('twice: the outcome is unknown, and the next call finds out', async () => {
    const seller = await shop()
    const proxy = await cuttingProxy(market, seller.url)
    const { pay } = await buying(seller)
    await pay(`${proxy.url}/thing`)
    proxy.cutAnswers = 2
    expect((await errorOf(pay(`${proxy.url}/thing`))).code).toBe('outcome_unknown')
    expect((await pay(`${proxy.url}/thing`)).status).toBe(200)
    expect(seller.served).toEqual([1, 2, 3])
  })

  it('cannot even be made: TypeError, as from fetch, and nothing is spent', async () => {
    const seller = await shop()
    const closed = await closedPort()
    let up = true
    const { pay, payer } = await buying(seller, {
      fetch: (input, init) => (up ? fetch(input, init) : fetch(closed)),
    })
    await pay(`${seller.url}/thing`)
    up = false
    await expect(pay(`${seller.url}/thing`)).rejects.toBeInstanceOf(TypeError)
    expect(payer.position.used).toBe(1)
  })

  it('by the caller’s own hand gives the turn to the next call', async () => {
    const seller = await shop({ handler: (_request, response) => void setTimeout(() => response.json({}), 20) })
    const { pay } = await buying(seller)
    await pay(`${seller.url}/thing`)
    const control = new AbortController()
    const aborted = pay(`${seller.url}/thing`, { signal: control.signal })
    const next = pay(`${seller.url}/thing`)
    setTimeout(() => control.abort(new Error('enough')), 5)
    await expect(aborted).rejects.toThrow('enough')
    expect((await next).status).toBe(200)
  })
})

describe('a seller whose store is out of reach', () => {
  it('is sent the same payment again when it said so, and serves it', async () => {
    const seller = await shop()
    const { pay } = await buying(seller)
    await pay(`${seller.url}/thing`)
    const { load, swap } = seller.store
    let broken = 2
    const away = (): boolean => broken-- > 0
    seller.store.swap = (...args) => (away() ? Promise.reject(new Error('away')) : swap.apply(seller.store, args))
    seller.store.load = (...args) => (away() ? Promise.reject(new Error('away')) : load.apply(seller.store, args))
    const response = await pay(`${seller.url}/thing`)
    expect(response.status).toBe(200)
    expect(new Set(seller.seen.slice(1))).toEqual(new Set([1, 2]))
    expect(seller.served).toEqual([1, 2])
  })

  it('for longer than patience: its 503 is the answer, and the steps are still good', async () => {
    const seller = await shop()
    const { pay } = await buying(seller, { patienceSeconds: 0 })
    const { swap } = seller.store
    seller.store.swap = () => Promise.reject(new Error('away'))
    expect((await pay(`${seller.url}/thing`)).status).toBe(503)
    seller.store.swap = swap
    expect((await pay(`${seller.url}/thing`)).status).toBe(200)
    expect(seller.seen).toEqual(['unpaid', 1, 1])
  })
})

describe('a price that changes', () => {
  it('is seen, checked against the caps, and paid, with one retry', async () => {
    let price = '0.001'
    const seller = await shop({ price: () => price })
    const { pay, quotes } = await buying(seller, { maxPerRequest: '0.005' })
    await pay(`${seller.url}/thing`)
    price = '0.003'
    expect((await pay(`${seller.url}/thing`)).status).toBe(200)
    expect(quotes.map(({ amount }) => amount)).toEqual([1_000n, 3_000n])
    expect(seller.seen).toEqual(['unpaid', 1, 2, 4])
    price = '0.006'
    expect((await errorOf(pay(`${seller.url}/thing`))).code).toBe('over_cap')
    price = '0.003'
    await pay(`${seller.url}/thing`)
    expect(seller.served).toEqual([1, 4, 7])
  })

  it('at every request is not run after', async () => {
    let price = 1
    const seller = await shop({ price: () => `0.00${(price++ % 8) + 1}` })
    const { pay } = await buying(seller)
    const response = await pay(`${seller.url}/thing`)
    expect(response.status).toBe(402)
    expect(settlementOf(response)).toMatchObject({ success: false, extensions: { sion: { code: 'invalid_payment_requirements' } } })
    expect(seller.seen.length).toBe(3)
  })
})

describe('a seller that lies', () => {
  /** A seller that answers as it is told; its quote is an honest one. */
  async function liar(answer: (position: number, seller: Shop) => object | undefined): Promise<{ url: string; seller: Shop; positions: number[] }> {
    const seller = await shop()
    const quoted = await fetch(`${seller.url}/thing`)
    const required = quoted.headers.get('payment-required') ?? ''
    const positions: number[] = []
    const url = await market.listen((request, response) => {
      const header = request.headers['payment-signature']
      if (typeof header !== 'string') return void response.writeHead(402, { 'payment-required': required }).end()
      const position = Number(decodePayment(header).payload['position'])
      positions.push(position)
      const sion = answer(position, seller)
      if (sion === undefined) return void response.writeHead(500).end()
      const settlement = { success: false, errorReason: 'no', transaction: '', network: `sion:${market.node.chain.slice(0, 32)}`, extensions: { sion } }
      response.writeHead(402, { 'payment-required': required, 'payment-response': Buffer.from(JSON.stringify(settlement)).toString('base64') }).end()
    })
    return { url, seller, positions }
  }

  it('about the position cannot make the payer reveal further: both claims are in the error', async () => {
    const { url, seller, positions } = await liar(() => ({ code: 'wrong_position', position: 500 }))
    const { pay, payer } = await buying(seller)
    const error = await errorOf(pay(url))
    expect([error.code, error.message]).toEqual(['position_conflict', expect.stringMatching(/the seller says that 500 steps .* this payer has used 0 and can have revealed 65 at most/)])
    expect(positions).toEqual([1])
    expect(payer.position.revealed).toBe(1)
  })

  it('step by step gets one retry, then its refusal is the answer', async () => {
    const { url, seller, positions } = await liar((position) => ({ code: 'wrong_position', position }))
    const { pay } = await buying(seller)
    expect((await pay(url)).status).toBe(402)
    expect(positions).toEqual([1, 2])
  })

  it('that takes everything and serves nothing gets no more than the caps', async () => {
    let turn = 0
    // A step is called used that was answered with 500 before: each call reveals one more.
    const { url, seller } = await liar((position) => (turn++ % 2 === 0 ? undefined : { code: 'wrong_position', position }))
    const { pay, payer } = await buying(seller, { maxTotal: '0.010' })
    let codes: (string | number)[] = []
    for (let i = 0; i < 40; i++) codes.push(await pay(url).then(({ status }) => status, (error: PaymentError) => error.code))
    expect(codes).toContain('over_total')
    expect(payer.position.revealed).toBeLessThanOrEqual(11)
    expect(pay.spent()).toBe(10_000n)
  })

  it('about a jump gets it once more, with one retry', async () => {
    const { url, seller, positions } = await liar(() => ({ code: 'jump_due', position: 0 }))
    const { pay } = await buying(seller)
    expect((await pay(url)).status).toBe(402)
    expect(positions).toEqual([1, 1])
  })

  it('in the form of its refusal is only refused', async () => {
    for (const sion of [{ code: 'wrong_position' }, { code: 'wrong_position', position: -1 }, { code: 'already_used', position: '7' }, { code: 7 }, []]) {
      const { url, seller, positions } = await liar(() => sion)
      const { pay } = await buying(seller)
      expect((await pay(url)).status).toBe(402)
      expect(positions).toEqual([1])
    }
  })
})

describe('a payer that starts again', () => {
  it('goes on where it was, and one that lost its position finds it with one retry', async () => {
    const seller = await shop()
    const stream = await buyer.open(seller.payee)
    const runs = async (times: number): Promise<void> => {
      const payer = await buyer.files.openPayer(stream)
      try {
        const pay = payingFetch({ stream: payer })
        for (let i = 0; i < times; i++) expect((await pay(`${seller.url}/thing`)).status).toBe(200)
      } finally {
        await payer.close()
      }
    }
    await runs(3)
    await runs(2)
    // As after a power cut: what was written last is gone.
    await buyer.files.setPosition(stream, { used: 2, revealed: 2 })
    await runs(2)
    expect(seller.served).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect(seller.seen.filter((step) => step !== 'unpaid')).toEqual([1, 2, 3, 4, 5, 3, 6, 7])
  })

  it('asks the ledger where the seller is further than any power cut explains', async () => {
    const seller = await shop()
    const stream = await buyer.open(seller.payee)
    const first = await buyer.files.openPayer(stream)
    const pay = payingFetch({ stream: first })
    for (let i = 0; i < 80; i++) await pay(`${seller.url}/thing`)
    await first.close()
    await buyer.files.setPosition(stream, { used: 0, revealed: 0 })
    const lost = await buyer.files.openPayer(stream)
    expect((await errorOf(payingFetch({ stream: lost })(`${seller.url}/thing`))).code).toBe('position_conflict')
    await lost.close()

    const { claimOf, settleStream } = await import('../../src/sdk/index.js')
    const { PayerChain } = await import('../../src/sdk/streams/payer-chain.js')
    const elements = await PayerChain.build(await buyer.files.load(stream))
    await settleStream(buyer.ledger, buyer.wallet, claimOf(stream, elements, 70, 0))
    const refresh = async () => {
      const { stream: found } = await readStream(buyer.ledger.client, stream)
      return found === undefined ? undefined : { escrow: found.escrow, settled: found.settled, closed: found.closed }
    }
    const found = await buyer.payer(stream, refresh)
    expect((await payingFetch({ stream: found })(`${seller.url}/thing`)).status).toBe(200)
    expect(found.position).toEqual({ used: 81, revealed: 81 })
  })
})
