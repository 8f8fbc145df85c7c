import type { Id, MicroUsd } from '../../codec/index.js'
import { networkOf } from '../../pulse/index.js'
import { QUOTE_SECONDS } from '../quote.js'
import type { PaymentRequirements } from '../wire.js'

/** What a seller of streams offers beside the price. */
export interface StreamOffer {
  /** Pulses that a stream must still last. */
  readonly margin: number
  /** Steps above the lowest unused one that may be paid out of order; 0 for strict positions. */
  readonly window: number
}

/**
 * The `stream` entry of a 402. It carries no nonce: an element of a chain pays for one position only, so it cannot be
 * replayed.
 */
export function streamRequirements(terms: { chain: Id; payee: Id; amount: MicroUsd } & StreamOffer): PaymentRequirements {
  const { chain, payee, amount, margin, window } = terms
  return {
    scheme: 'stream',
    network: networkOf(chain),
    asset: 'USD',
    amount: amount.toString(),
    payTo: payee,
    maxTimeoutSeconds: QUOTE_SECONDS,
    extra: { chain, decimals: 6, margin, ...(window === 0 ? {} : { window }) },
  }
}
