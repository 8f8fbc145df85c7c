/**
 * Every way in which a payment is not taken, in one table: the code a program acts on, the HTTP status it comes with,
 * and what the program should do. x402's own names where one fits. docs/x402.md prints this table; a test holds them
 * together.
 */
export const CODES = {
  // 400: the header cannot be read.
  invalid_payload: { status: 400, advice: 'Send a payment as the 402 asks for it; this one cannot be read.' },
  payment_too_large: { status: 400, advice: 'Pay by reference: submit the transaction and send its digest.' },
  // 402: readable, and refused.
  unsupported_scheme: { status: 402, advice: 'Choose one of the schemes in the 402’s `accepts`.' },
  invalid_network: { status: 402, advice: 'Pay on the network that the 402 names.' },
  invalid_payment_requirements: { status: 402, advice: 'Accept the terms as quoted; the reason names the field.' },
  quote_unknown: { status: 402, advice: 'Take the fresh quote: this nonce is not for this request.' },
  quote_expired: { status: 402, advice: 'Take the fresh quote, if the expired one was not paid.' },
  invalid_transaction: { status: 402, advice: 'Pay exactly what was quoted, for the quoted purpose.' },
  invalid_signature: { status: 402, advice: 'Sign again with the payer’s keys.' },
  unknown_keys: { status: 402, advice: 'Send the payer’s public keys along.' },
  payment_used: { status: 402, advice: 'This payment has bought its answer. Pay the fresh quote for another.' },
  quote_bound: { status: 402, advice: 'Another payment stands behind this quote. Send that one, or pay the fresh quote.' },
  transaction_refused: { status: 402, advice: 'The ledger did not take the transaction; nothing was paid. The reason says why.' },
  transaction_failed: { status: 402, advice: 'The transaction failed on the ledger; only its fee was charged.' },
  insufficient_funds: { status: 402, advice: 'Put money into the paying account, then pay.' },
  // 402, of a stream payment. The reason names both numbers; `position` says where the desk stands.
  invalid_position: { status: 402, advice: 'Send a position from 1 to the stream’s length.' },
  invalid_value: { status: 402, advice: 'Send the 32 bytes of the chain’s element in hex.' },
  invalid_jump: { status: 402, advice: 'Send the checkpoint’s index and the 32-byte nodes of its path.' },
  unknown_stream: { status: 402, advice: 'Open the stream first, or name the right one.' },
  wrong_payee: { status: 402, advice: 'Open a stream to this payee; this one pays another.' },
  wrong_asset: { status: 402, advice: 'Pay from a stream in the asset that the 402 names.' },
  stream_closed: { status: 402, advice: 'Open another stream.' },
  stream_closing: { status: 402, advice: 'Open another stream.' },
  price_not_whole_steps: { status: 402, advice: 'Open a stream whose step divides the price.' },
  too_many_steps: { status: 402, advice: 'Open a stream with larger steps.' },
  past_end: { status: 402, advice: 'Open another stream; this chain is used up.' },
  wrong_position: { status: 402, advice: 'Go back to `position`, pay the next step, and retry once.' },
  outside_window: { status: 402, advice: 'Take the lowest of the `unused` steps, and retry once.' },
  already_used: { status: 402, advice: 'Take the lowest of the `unused` steps, and retry once.' },
  wrong_element: { status: 402, advice: 'Send the element of this stream at this position.' },
  jump_due: { status: 402, advice: 'Send the same payment with the checkpoint’s jump.' },
  jump_past_end: { status: 402, advice: 'Send the jump of a checkpoint that the stream has.' },
  jump_index: { status: 402, advice: 'Send the jump of the highest checkpoint up to the position.' },
  jump_path_length: { status: 402, advice: 'Send the whole path of the checkpoint.' },
  wrong_jump: { status: 402, advice: 'Send the path as the payer’s chain gives it.' },
  stream_expiring: { status: 402, advice: 'Top the stream up with a later last Pulse.' },
  // 503: try the same payment again.
  settlement_pending: {
    status: 503,
    advice: 'The payment may have been made. Send the same payment again after Retry-After; sign no other.',
  },
  store_unavailable: { status: 503, advice: 'Nothing was accepted. Send the same request again after Retry-After.' },
  store_contended: { status: 503, advice: 'Nothing was accepted. Send the same request again after Retry-After.' },
  store_newer_format: { status: 503, advice: 'Nothing was accepted. The seller must upgrade this server.' },
  ledger_unavailable: { status: 503, advice: 'Nothing was accepted. Send the same request again after Retry-After.' },
  facilitator_unavailable: { status: 503, advice: 'Nothing was accepted. Send the same request again after Retry-After.' },
} as const satisfies Record<string, { status: 400 | 402 | 503; advice: string }>

export type Code = keyof typeof CODES

export function isCode(value: unknown): value is Code {
  return typeof value === 'string' && Object.hasOwn(CODES, value)
}

/** A payment that is not taken. A value, not an exception: refusing is this software's daily work. */
export interface Refusal {
  readonly kind: 'refused'
  readonly code: Code
  /** One sentence; it becomes `errorReason`. */
  readonly reason: string
  /** Who tried to pay, where that is known. */
  readonly payer?: string
  /** The ledger transaction, where one was executed. */
  readonly transaction?: string
  /** More for programs, beside `code` in `extensions.sion`. */
  readonly details?: Record<string, unknown>
}

export function refuse(code: Code, reason: string, more: Omit<Refusal, 'kind' | 'code' | 'reason'> = {}): Refusal {
  return { kind: 'refused', code, reason, ...more }
}
