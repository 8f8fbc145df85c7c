import * as P from 'micro-packed'
import { count, hexBytes, id, maybe, toHex, unpack, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { SIZES, type DualPublicKeys } from '../crypto/keys.js'
import { action, type Action } from './actions.js'
import { dualPublicKeys } from './objects.js'

/** A transaction lives at most this many Pulses, so that its nonce need not be remembered for ever. */
export const MAX_VALIDITY_PULSES = 1_000

/** What a signer asks of the ledger (docs/protocol.md, "Transactions"). */
export interface Body {
  /** The chain it is for: a transaction of one chain is nothing on another. */
  readonly chain: Id
  readonly signer: Id
  /** 16 random bytes in hex. (signer, nonce) executes at most once. */
  readonly nonce: string
  /** The last Pulse that may execute it. */
  readonly validUntil: number
  readonly action: Action
}

/** A body with its signatures over the digest. Whoever holds this can have it executed: it is the buyer's ticket. */
export interface SignedTransaction {
  readonly body: Body
  /** Both public keys, until the ledger has recorded them. */
  readonly keys?: DualPublicKeys | undefined
  readonly mlDsa: Uint8Array
  /** Needed where the account is dual. */
  readonly slhDsa?: Uint8Array | undefined
}

export const body: P.CoderType<Body> = P.struct({
  chain: id,
  signer: id,
  nonce: hexBytes(16),
  validUntil: count,
  action,
})

const signed: P.CoderType<SignedTransaction> = P.struct({
  body,
  keys: maybe(dualPublicKeys),
  mlDsa: P.bytes(SIZES.mlDsaSignature),
  slhDsa: maybe(P.bytes(SIZES.slhDsaSignature)),
})

export function encodeBody(value: Body): Uint8Array {
  return body.encode(value)
}

/** @throws InputError unless `bytes` are the canonical encoding of a body. */
export function decodeBody(bytes: Uint8Array): Body {
  return unpack(body, bytes, 'transaction body')
}

export function encodeSigned(value: SignedTransaction): Uint8Array {
  return signed.encode(value)
}

/** @throws InputError unless `bytes` are the canonical encoding of a signed transaction. Signatures are not checked. */
export function decodeSigned(bytes: Uint8Array): SignedTransaction {
  return unpack(signed, bytes, 'transaction')
}

/**
 * `H("sion/tx/v1", encoded body)`: what is signed, and what names the transaction everywhere. Signatures are no part of
 * it, since they are not unique.
 */
export function digestOf(value: Body): Id {
  return toHex(taggedHash('sion/tx/v1', encodeBody(value)))
}
