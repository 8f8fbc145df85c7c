import * as P from 'micro-packed'
import { amount, byKind, count, id, maybe, unpack, type Id } from '../codec/index.js'
import { ELEMENT_LENGTH, SALT_LENGTH } from '../crypto/chain-step.js'
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

/** Escrow that a payee collects with the elements of the payer's hash chain (docs/protocol.md, "Streams"). */
export interface Stream {
  readonly kind: 'stream'
  readonly payer: Id
  readonly payee: Id
  /** e(0): 32 bytes. */
  readonly anchor: Uint8Array
  /** 16 bytes, in every step of the chain. */
  readonly salt: Uint8Array
  /** RFC 9162 root over ⌊length / 64⌋ checkpoints. */
  readonly checkpointRoot: Uint8Array
  /** Elements in the chain: the last position that pays. */
  readonly length: number
  /** Micro-USD a step. */
  readonly stepValue: bigint
  /** Micro-USD ever put in; what was settled is part of it. */
  readonly escrow: bigint
  /** The position that the payee was paid up to, and the element there. */
  readonly settled: number
  readonly settledElement: Uint8Array
  /** Until after this Pulse the escrow cannot go back to the payer. */
  readonly lastPulse: number
  readonly closed: boolean
}

/** Everything the state can hold. A family adds its objects here and in {@link object}, under the next free tag. */
export type LedgerObject = Account | SpentNonce | Stream

const object = byKind<LedgerObject>({
  account: [1, P.struct({ balance: amount, dual: P.bool, keys: maybe(dualPublicKeys) })],
  spentNonce: [2, P.struct({ validUntil: count })],
  stream: [
    3,
    P.struct({
      payer: id,
      payee: id,
      anchor: P.bytes(ELEMENT_LENGTH),
      salt: P.bytes(SALT_LENGTH),
      checkpointRoot: P.bytes(32),
      length: P.U32BE,
      stepValue: amount,
      escrow: amount,
      settled: P.U32BE,
      settledElement: P.bytes(ELEMENT_LENGTH),
      lastPulse: count,
      closed: P.bool,
    }),
  ],
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
