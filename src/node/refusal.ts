import type { InadmissibleCode } from '../ledger/index.js'

/** Why the node does not take a transaction. Nothing was changed or charged. */
export interface Refusal {
  readonly kind: 'refused'
  readonly code: RefusalCode
  readonly reason: string
}

export type RefusalCode =
  | InadmissibleCode
  /** The signer's balance, less what its pending transactions reserve, does not cover this one. */
  | 'insufficient_balance'
  | 'bad_signature'
  /** Too few validators run. It may be sent again. */
  | 'chain_halted'
  /** More is pending than the node takes. It may be sent again. */
  | 'too_busy'

export function refuse(code: RefusalCode, reason: string): Refusal {
  return { kind: 'refused', code, reason }
}
