import { SionError } from '../codec/index.js'

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
