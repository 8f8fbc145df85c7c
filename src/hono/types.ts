import type { Context, MiddlewareHandler } from 'hono'
import type { RouteTerms } from '../x402/paywall.js'
import type { Price } from '../x402/price.js'

export type { SellerOptions } from '../facilitator/seller.js'
export type { RouteTerms } from '../x402/paywall.js'
export type { Price } from '../x402/price.js'

/** Makes a route paid: `app.get('/report', charge('0.25'), handler)`. */
export interface Charge {
  /** @throws InputError at once for a fixed price that is none. */
  (terms: Price | RouteTerms<Context>): MiddlewareHandler
  /** Resolves once payments can be taken; throws why they can't. Until then priced routes answer 503. */
  ready(): Promise<void>
  close(): Promise<void>
}
