import { Hono, type Context } from 'hono'
import { cors } from 'hono/cors'
import { etag } from 'hono/etag'
import { describe, expect, it } from 'vitest'
import { SionError } from '../../src/codec/index.js'
import { paywall } from '../../src/hono/index.js'
import { decodePaymentRequired } from '../../src/x402/headers.js'
import { fakeFacilitator } from '../x402/support/fake-facilitator.js'
import { CHAIN, pay, PAYEE } from '../x402/support/payments.js'
import { gateOf, watchedStore } from '../x402/support/watched-store.js'

/** A Hono app without Node under it, as on an edge runtime: requests and responses are the runtime's own. */
function shopOf(handler: (context: Context) => Response | Promise<Response>, prepare: (app: Hono) => void = () => undefined) {
  const store = watchedStore()
  const charge = paywall({ payTo: PAYEE, chain: CHAIN, store, facilitator: fakeFacilitator() })
  const app = new Hono()
  app.onError((_error, context) => context.text('broken', 500))
  prepare(app)
  app.get('/a', charge('0.25'), handler)
  const quoteHeader = async (): Promise<string> => {
    const quoted = await app.request('/a')
    return pay(decodePaymentRequired(quoted.headers.get('PAYMENT-REQUIRED') ?? '')).header
  }
  const ask = (header: string, init: RequestInit = {}): Response | Promise<Response> =>
    app.request('/a', { ...init, headers: { Origin: 'https://app.example', 'PAYMENT-SIGNATURE': header } })
  return { app, store, quoteHeader, ask }
}

describe('a paid route on an edge runtime', () => {
  it('sells, once', async () => {
    const { quoteHeader, ask } = shopOf((context) => context.json({ sold: true }))
    const header = await quoteHeader()
    const bought = await ask(header)
    expect([bought.status, await bought.json(), bought.headers.get('Cache-Control')]).toEqual([200, { sold: true }, 'private'])
    expect(bought.headers.has('PAYMENT-RESPONSE')).toBe(true)
    expect((await ask(header)).status).toBe(402)
  })

  it('sells a response whose headers cannot be changed, such as one that was fetched', async () => {
    const { quoteHeader, ask } = shopOf(() => Response.redirect('https://elsewhere.example/', 303))
    const bought = await ask(await quoteHeader())
    expect([bought.status, bought.headers.get('Location'), bought.headers.get('Cache-Control')]).toEqual([303, 'https://elsewhere.example/', 'private'])
    expect(bought.headers.has('PAYMENT-RESPONSE')).toBe(true)
  })

  it('leaves a payment good when the request was aborted while the handler ran', async () => {
    const handling = gateOf()
    let calls = 0
    const { store, quoteHeader, ask } = shopOf(async (context) => {
      if (++calls === 1) await handling.wait()
      return context.text('sold')
    })
    const header = await quoteHeader()
    const abort = new AbortController()
    const asked = ask(header, { signal: abort.signal })
    await handling.reached
    abort.abort()
    await store.releasedTimes(1)
    expect((await ask(header)).status).toBe(200)
    handling.open()
    expect(await (await asked).text()).toBe('')
  })

  it('leaves a payment good when the request was aborted while its answer was decided', async () => {
    const { store, quoteHeader, ask } = shopOf((context) => context.text('sold'))
    const header = await quoteHeader()
    const spending = gateOf()
    store.beforeSpend = spending.wait
    const abort = new AbortController()
    const asked = ask(header, { signal: abort.signal })
    await spending.reached
    abort.abort()
    spending.open()
    expect(await (await asked).text()).toBe('')
    store.beforeSpend = undefined
    expect((await ask(header)).status).toBe(200)
  })

  it('leaves a payment good when the handler gives no response', async () => {
    let calls = 0
    const { store, quoteHeader, ask } = shopOf((context) => (++calls === 1 ? (undefined as unknown as Response) : context.text('sold')))
    const header = await quoteHeader()
    expect((await ask(header)).status).toBe(500)
    expect(store.spent).toEqual([])
    expect((await ask(header)).status).toBe(200)
  })

  it('leaves a payment good when the handler throws what is no Error', async () => {
    let calls = 0
    const { store, quoteHeader, ask } = shopOf((context) => {
      // oxlint-disable-next-line no-throw-literal
      if (++calls === 1) throw 'text'
      return context.text('sold')
    })
    const header = await quoteHeader()
    await expect(async () => ask(header)).rejects.toBe('text')
    await store.releasedTimes(1)
    expect((await ask(header)).status).toBe(200)
  })

  it('cancels a stream that nobody will read', async () => {
    const cancelled = gateOf()
    const { store, quoteHeader, ask } = shopOf(() => new Response(new ReadableStream({ cancel: () => cancelled.open() })))
    const header = await quoteHeader()
    store.beforeSpend = () => Promise.reject(new SionError('store_unavailable', 'connection refused'))
    expect((await ask(header)).status).toBe(503)
    await cancelled.opened
  })

  it('works with Hono’s own CORS: exposed beside the app’s, kept on a 402, a preflight answered by either', async () => {
    const { app, quoteHeader, ask } = shopOf(
      (context) => context.json({ sold: true }),
      (app) => app.use(cors({ origin: 'https://app.example', exposeHeaders: ['X-App'], credentials: true })),
    )
    const header = await quoteHeader()
    for (const answer of [await app.request('/a', { headers: { Origin: 'https://app.example' } }), await ask(header)]) {
      expect(answer.headers.get('Access-Control-Allow-Origin')).toBe('https://app.example')
      expect(answer.headers.get('Access-Control-Expose-Headers')).toBe('X-App, PAYMENT-REQUIRED, PAYMENT-RESPONSE, PAYMENT-SIGNATURE')
      expect(answer.headers.get('Vary')).toBe('Origin')
    }
    const preflight = await app.request('/a', {
      method: 'OPTIONS',
      headers: { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'payment-signature' },
    })
    expect([preflight.status, preflight.headers.get('Access-Control-Allow-Headers')]).toEqual([204, 'payment-signature'])
  })

  it('works under middleware that rewrites the answer: what it makes of a bought one leaves', async () => {
    const { quoteHeader, ask } = shopOf(
      (context) => context.text('sold'),
      (app) => app.use(etag()),
    )
    const bought = await ask(await quoteHeader())
    expect([bought.status, await bought.text(), bought.headers.has('ETag'), bought.headers.has('PAYMENT-RESPONSE')]).toEqual([200, 'sold', true, true])
  })
})
