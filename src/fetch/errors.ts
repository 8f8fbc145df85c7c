import { SionError } from '../codec/index.js'
import type { StreamErrorCode } from '../sdk/index.js'

/**
 * Why a call was not paid, or not known to be. What is *not sent* cost nothing; `outcome_unknown` may have: the same
 * call, made again with the same payingFetch, sends the same payment.
 */
export type PaymentErrorCode =
  | 'over_cap'
  | 'over_total'
  | 'quote_refused'
  | 'no_payable_offer'
  | 'malformed_quote'
  | 'redirected'
  | 'ledger_unavailable'
  /** Submitted by the payer itself, and not taken: nothing was paid. */
  | 'transaction_refused'
  | 'outcome_unknown'
  /** Paid from a stream, and the answer was lost on the way: the same call, made again, pays for another. */
  | 'answer_lost'
  /** Nothing was revealed from the stream. */
  | StreamErrorCode

export class PaymentError extends SionError {
  override readonly name = 'PaymentError'

  constructor(
    override readonly code: PaymentErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(code, message, options)
  }
}
