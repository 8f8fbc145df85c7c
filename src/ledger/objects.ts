import * as P from 'micro-packed'
import { amount, byKind, count, id, list, maybe, text, toHex, unpack, type Id } from '../codec/index.js'
import { ELEMENT_LENGTH, SALT_LENGTH } from '../crypto/chain-step.js'
import { taggedHash } from '../crypto/hash.js'
import { SIZES, type DualPublicKeys } from '../crypto/keys.js'
import { peakCount, type LogFrontier } from '../merkle/index.js'
import { MAX_SCHEMA_BYTES, MAX_SUBJECT_BYTES } from './actions.js'
import { atom, formula, MAX_LABEL_BYTES, type Atom, type Formula } from './formula.js'

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

/** What a claim says, for good. Its id is the hash of this. */
export interface Statement {
  /** The transaction that issued it, or whose effect it records. */
  readonly source: Id
  readonly issuer: Id
  readonly subject: string
  /** How to read the subject, such as `note/v1`. */
  readonly schema: string
  readonly formula: Formula
  readonly adjudicator?: Atom | undefined
  /** How likely a falsehood is found out, in thousandths. */
  readonly detection: number
  /** The Pulse that issued it. */
  readonly issued: number
  /** It holds until this Pulse. */
  readonly lastPulse: number
}

/** A statement on record, at its place in the knowledge log. Never changed, never deleted. */
export interface Claim extends Statement {
  readonly kind: 'claim'
  readonly logIndex: number
}

/** Money that its owner's claims rest on. */
export interface Bond {
  readonly kind: 'bond'
  readonly owner: Id
  readonly label: string
  /** Micro-USD. */
  readonly amount: bigint
  /** Micro-USD of it that are promised to somebody already. */
  readonly reserved: bigint
  /** Nothing of it can be taken back before the Pulse after this one: the last of the claims that rest on it. */
  readonly heldUntil: number
}

/** The knowledge log, as far as the next claim needs it. Its leaves are the claims' ids. */
export interface KnowledgeLog extends LogFrontier {
  readonly kind: 'knowledgeLog'
  readonly peaks: Uint8Array[]
}

/** Everything the state can hold. A family adds its objects here and in {@link object}, under the next free tag. */
export type LedgerObject = Account | SpentNonce | Stream | Claim | Bond | KnowledgeLog

const statementFields = {
  source: id,
  issuer: id,
  subject: text(MAX_SUBJECT_BYTES),
  schema: text(MAX_SCHEMA_BYTES),
  formula,
  adjudicator: maybe(atom),
  detection: P.U16BE,
  issued: count,
  lastPulse: count,
}

const statement: P.CoderType<Statement> = P.struct(statementFields)

const knowledgeLog: P.CoderType<Omit<KnowledgeLog, 'kind'>> = P.validate(P.struct({ size: count, peaks: list(P.bytes(32), 53) }), (log) => {
  if (log.peaks.length !== peakCount(log.size)) throw new RangeError(`${log.peaks.length} peaks for a log of ${log.size}`)
  return log
})

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
  claim: [6, P.struct({ ...statementFields, logIndex: count })],
  bond: [7, P.struct({ owner: id, label: text(MAX_LABEL_BYTES), amount, reserved: amount, heldUntil: count })],
  knowledgeLog: [8, knowledgeLog],
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

/** A claim's id: `H("sion/claim/v1", statement bytes)`. Whoever has the id and the claim can check that they belong together. */
export function claimId(value: Statement): Id {
  return toHex(taggedHash('sion/claim/v1', statement.encode(value)))
}
