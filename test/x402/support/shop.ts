import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { SellerOptions } from '../../../src/facilitator/seller.js'
import { decodePaymentRequired, decodeSettlement } from '../../../src/x402/headers.js'
import type { PaymentRequired, SettleResponse } from '../../../src/x402/wire.js'
import { fakeFacilitator, type FakeFacilitator } from './fake-facilitator.js'
import { ask, type HttpAnswer, type HttpAsk } from './http.js'
import { CHAIN, pay, PAYEE, type MadePayment } from './payments.js'
import { gateOf, watchedStore, type WatchedStore } from './watched-store.js'

/** What a handler does; each framework does it in its own way, and the client sees the same. */
export type Behaviour =
  /** 200, `{"sold":true}`. */
  | 'json'
  /** 201, text. */
  | 'created'
  /** 200 without a body. */
  | 'empty'
  | 'no-content'
  | 'not-modified'
  /** 302 to `/elsewhere`. */
  | 'redirect'
  /** 404, text. */
  | 'not-found'
  /** 400, text, from the handler itself. */
  | 'invalid'
  /** 503, text. */
  | 'server-error'
  /** Throws before it awaits anything. */
  | 'throws'
  | 'rejects'
  /** An error that the app's error handling answers with 422. */
  | 'throws-422'
  /** Three chunks, a macrotask apart. */
  | 'chunks'
  /** Two server-sent events; the second waits for {@link Shop.hold}. */
  | 'events'
  /** A file of 200,000 bytes. */
  | 'file'
  /** {@link LARGE_CHUNKS} chunks of 64 KiB, made as they are asked for. */
  | 'large'
  /** Text with cookies, an ETag, a length, and `Cache-Control: public, max-age=60`. */
  | 'headers'
  /** JSON, once {@link Shop.hold} opens. */
  | 'waits'

export const SECRET = 'what is sold'
export const FILE_BYTES = 200_000
export const LARGE_CHUNKS = 1_600

export interface ShopSpec {
  /** The same for each call, or by the number of the call from 1. */
  readonly handler: Behaviour | ((call: number) => Behaviour)
  readonly price?: string | ((header: (name: string) => string | undefined) => string | Promise<string>)
  readonly description?: string
  readonly mimeType?: string
  /** Where the paywall stands: on the route `/a` (default), before every route of the app, or before a router at `/api`. */
  readonly place?: 'route' | 'app' | 'router'
  /** A middleware before the paywall that sets CORS headers. */
  readonly cors?: boolean
  /** A middleware before the paywall that answers 400 where `?bad` is asked, as the app's own validation. */
  readonly validates?: boolean
  /** A middleware before the paywall that sets `Cache-Control: public` and `X-App`. */
  readonly presets?: boolean
  /** Takes the method from `X-HTTP-Method-Override`. */
  readonly overrides?: boolean
  readonly seller?: Partial<SellerOptions>
}

/** What a framework builds of it: a server that listens, the count of handler calls, and its end. */
export interface Framework {
  readonly name: string
  build(spec: ShopSpec, options: SellerOptions, scene: Scene): Promise<{ server: Server; ready(): Promise<void>; close(): Promise<void> }>
}

/** What handlers share with the test. */
export interface Scene {
  calls: number
  /** Chunks of a large answer made so far. */
  made: number
  readonly hold: ReturnType<typeof gateOf>
  readonly filePath: string
  next(): Behaviour
}

export interface Shop {
  readonly port: number
  readonly facilitator: FakeFacilitator
  readonly store: WatchedStore
  readonly scene: Scene
  ready(): Promise<void>
  ask(ask?: HttpAsk): Promise<HttpAnswer>
  /** Asks without a payment and makes one of the 402. */
  pay(ask?: HttpAsk): Promise<MadePayment>
  /** Pays and asks again with it. */
  buy(ask?: HttpAsk): Promise<HttpAnswer>
  /** Resolves when no client is connected any more. */
  deserted(): Promise<void>
  stop(): Promise<void>
}

export async function openShop(framework: Framework, spec: ShopSpec, filePath: string): Promise<Shop> {
  const facilitator = fakeFacilitator()
  const store = watchedStore()
  const { handler } = spec
  const scene: Scene = {
    calls: 0,
    made: 0,
    hold: gateOf(),
    filePath,
    next() {
      scene.calls++
      return typeof handler === 'function' ? handler(scene.calls) : handler
    },
  }
  const { server, ready, close } = await framework.build(spec, { payTo: PAYEE, chain: CHAIN, store, facilitator, ...spec.seller }, scene)
  const { port } = server.address() as AddressInfo
  const path = spec.place === 'router' ? '/api/a' : '/a'
  const shop: Shop = {
    port,
    facilitator,
    store,
    scene,
    ready,
    ask: (asked) => ask(port, { path, ...asked }),
    async pay(asked) {
      return pay(quoted(await shop.ask(asked)))
    },
    async buy(asked = {}) {
      const { header } = await shop.pay(asked)
      return shop.ask({ ...asked, headers: { ...asked.headers, 'PAYMENT-SIGNATURE': header } })
    },
    async deserted() {
      while ((await connections(server)) > 0) await new Promise(setImmediate)
    },
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await close()
    },
  }
  return shop
}

const chunk = Buffer.alloc(65_536, 7)

/** A large answer, a chunk at a time. */
export function* largeChunks(scene: Scene): Generator<Buffer> {
  for (let i = 0; i < LARGE_CHUNKS; i++) {
    scene.made++
    yield chunk
  }
}

export function quoted({ headers }: HttpAnswer): PaymentRequired {
  return decodePaymentRequired(String(headers['payment-required']))
}

export function settled({ headers }: HttpAnswer): SettleResponse {
  return decodeSettlement(String(headers['payment-response']))
}

/** The stable code of a refusal. */
export function codeOf(answer: HttpAnswer): unknown {
  return (settled(answer).extensions?.['sion'] as { code?: unknown } | undefined)?.code
}

function connections(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
  })
}
