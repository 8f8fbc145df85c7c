import { createSignaturePool } from '../crypto/signature-pool.js'
import type { SellerOptions } from '../facilitator/seller.js'
import { sellWith } from './middleware.js'
import type { Charge } from './types.js'

export * from './types.js'

/** The middleware on Node: no signature is checked on the event loop. See docs/x402.md, "Selling". */
export function paywall(options: SellerOptions): Charge {
  return sellWith(options, createSignaturePool)
}
