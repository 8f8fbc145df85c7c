import * as P from 'micro-packed'
import { amount, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'

/** What the genesis fixes for all rules. Amounts in micro-USD. */
export interface Parameters {
  /** Every transaction. */
  readonly feeBase: bigint
  /** Each object that an action touches besides the signer's account, as its target. */
  readonly feeTouched: bigint
  /** On top of that, each object that it creates. */
  readonly feeCreated: bigint
}

export const DEFAULT_PARAMETERS: Parameters = { feeBase: 1_000n, feeTouched: 100n, feeCreated: 100n }

export const parameters: P.CoderType<Parameters> = P.struct({ feeBase: amount, feeTouched: amount, feeCreated: amount })

/** The configuration hash that every header names. */
export function configHash(value: Parameters): Id {
  return toHex(taggedHash('sion/config/v1', parameters.encode(value)))
}
