import { inlineSignatures } from '../crypto/signatures.js'
import type { SellerOptions } from '../facilitator/seller.js'
import { sellWith } from './middleware.js'
import type { Charge } from './types.js'

export * from './types.js'

/**
 * The seller's middleware for Hono, on Node and on edge runtimes. Put it on a route after the app's own validation, or
 * before a whole router; the route is the framework's own match.
 *
 * An answer below 500 has been bought before it leaves; from 500 on, or when the handler throws or the client goes away
 * first, the same payment is good again.
 *
 * @throws InputError naming the option that is wrong.
 */
export function paywall(options: SellerOptions): Charge {
  return sellWith(options, () => inlineSignatures)
}
