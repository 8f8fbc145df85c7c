import * as P from 'micro-packed'
import { amount, byKind, count, maybe, unpack } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { SIZES, type DualPublicKeys } from '../crypto/keys.js'

/** Both public keys of an account or a validator. */
export const dualPublicKeys: P.CoderType<DualPublicKeys> = P.struct({
  mlDsa: P.bytes(SIZES.mlDsaPublic),
  slhDsa: P.bytes(SIZES.slhDsaPublic),
})

/** Money under a pair of keys. `keys` are recorded by the account's first executed transaction. */
export interface Account {
  readonly kind: 'account'
  readonly balance: bigint
  /** Every transaction needs both signatures. */
  readonly dual: boolean
  readonly keys?: DualPublicKeys | undefined
}

/** (signer, nonce) was executed; forgotten in the Pulse after `validUntil`. */
export interface SpentNonce {
  readonly kind: 'spentNonce'
  readonly validUntil: number
}

/** Everything the state can hold. A family adds its objects here and in {@link object}, under the next free tag. */
export type LedgerObject = Account | SpentNonce

const object = byKind<LedgerObject>({
  account: [1, P.struct({ balance: amount, dual: P.bool, keys: maybe(dualPublicKeys) })],
  spentNonce: [2, P.struct({ validUntil: count })],
})

export const EMPTY_ACCOUNT: Account = { kind: 'account', balance: 0n, dual: false }

export function encodeObject(value: LedgerObject): Uint8Array {
  return object.encode(value)
}

/** @throws InputError unless `bytes` are the canonical encoding of an object. */
export function decodeObject(bytes: Uint8Array): LedgerObject {
  return unpack(object, bytes, 'object')
}

/** What a state leaf commits to: `H("sion/object/v1", object bytes)`. */
export function objectHash(bytes: Uint8Array): Uint8Array {
  return taggedHash('sion/object/v1', bytes)
}
