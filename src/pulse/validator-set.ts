import * as P from 'micro-packed'
import { amount, list, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import type { DualPublicKeys } from '../crypto/keys.js'
import { dualPublicKeys } from '../ledger/index.js'

/** One validator: its keys derive its id, its stake is its weight. */
export interface Validator {
  readonly keys: DualPublicKeys
  readonly stake: bigint
}

export const validators: P.CoderType<Validator[]> = list(P.struct({ keys: dualPublicKeys, stake: amount }), 256)

/** `H("sion/validator/v1", mlDsaPublic ‖ slhDsaPublic)`. */
export function validatorId(keys: DualPublicKeys): Id {
  return toHex(taggedHash('sion/validator/v1', keys.mlDsa, keys.slhDsa))
}

/** What a header commits to: the whole set, in its order, with stakes and keys. */
export function validatorSetHash(set: readonly Validator[]): Id {
  return toHex(taggedHash('sion/validator-set/v1', validators.encode([...set])))
}

export function totalStake(set: readonly Validator[]): bigint {
  return set.reduce((sum, { stake }) => sum + stake, 0n)
}

/** More than two thirds of the stake: ⌊2S/3⌋ + 1. */
export function quorumOf(total: bigint): bigint {
  return (2n * total) / 3n + 1n
}

/** Why a set is no set: empty, a stake of zero, or one key listed twice (each would count its stake). */
export function validatorSetProblem(set: readonly Validator[]): string | undefined {
  if (set.length === 0) return 'an empty validator set'
  const seen = new Set<string>()
  for (const { keys, stake } of set) {
    if (stake === 0n) return `validator ${validatorId(keys).slice(0, 8)} has no stake`
    for (const key of [`m${toHex(keys.mlDsa)}`, `s${toHex(keys.slhDsa)}`]) {
      if (seen.has(key)) return `validator ${validatorId(keys).slice(0, 8)} shares a key with another`
      seen.add(key)
    }
  }
  return undefined
}
