import * as P from 'micro-packed'
import { amount, byKind, count, id, list, maybe, text, type Id } from '../codec/index.js'
import { ELEMENT_LENGTH, SALT_LENGTH } from '../crypto/chain-step.js'
import { atom, formula, MAX_LABEL_BYTES, type Atom, type Formula } from './formula.js'

/** Pay `amount` micro-USD to `to`. `purpose` names what for, such as `x402:<nonce>`; empty when there is none. */
export interface Transfer {
  readonly kind: 'transfer'
  readonly to: Id
  readonly amount: bigint
  readonly purpose: string
}

/** From now on every transaction of the signer needs both signatures, or one again. */
export interface SetDual {
  readonly kind: 'setDual'
  readonly dual: boolean
}

/** Put `escrow` where only `payee` can collect it, a step at a time, with elements of the chain that ends in `anchor`. */
export interface OpenStream {
  readonly kind: 'openStream'
  readonly payee: Id
  readonly anchor: Uint8Array
  readonly salt: Uint8Array
  readonly checkpointRoot: Uint8Array
  readonly length: number
  readonly stepValue: bigint
  readonly escrow: bigint
  readonly lastPulse: number
}

/** More escrow, a later end, or both: neither can shrink. */
export interface TopUpStream {
  readonly kind: 'topUpStream'
  readonly stream: Id
  /** Micro-USD added; 0 for none. */
  readonly amount: bigint
  /** The new last Pulse; the present one to leave it. */
  readonly lastPulse: number
}

/** A checkpoint's place under the stream's root. */
export interface SettleJump {
  /** From 1: it is e(64 × index), leaf number index − 1. */
  readonly index: number
  readonly path: Uint8Array[]
}

/** One stream's claim: the element at `position`, which hashes down to what was settled, or to a proven checkpoint. */
export interface StreamClaim {
  readonly stream: Id
  readonly position: number
  readonly element: Uint8Array
  readonly jump?: SettleJump | undefined
}

/** Pay payees what the claims prove, whoever submits it. */
export interface SettleStreams {
  readonly kind: 'settleStreams'
  readonly claims: StreamClaim[]
}

/** End a stream: the payee at any time, the payer after its last Pulse. What is not settled goes back to the payer. */
export interface CloseStream {
  readonly kind: 'closeStream'
  readonly stream: Id
}

/** State something, and what it rests on. It enters the knowledge log. */
export interface IssueClaim {
  readonly kind: 'issueClaim'
  readonly subject: string
  /** How to read the subject, such as `note/v1`. */
  readonly schema: string
  /** Every bond in it is the signer's own. */
  readonly formula: Formula
  /** Who judges whether it was false; nobody in particular if absent. */
  readonly adjudicator?: Atom | undefined
  /** How likely a falsehood is found out, in thousandths: 1 to 1,000. */
  readonly detection: number
  /** It holds until this Pulse. */
  readonly lastPulse: number
}

/** Put money where the signer's claims can rest on it. */
export interface DepositBond {
  readonly kind: 'depositBond'
  readonly label: string
  readonly amount: bigint
}

/** Take back what no claim rests on any more. */
export interface WithdrawBond {
  readonly kind: 'withdrawBond'
  readonly label: string
  readonly amount: bigint
}

/** Everything a transaction can ask. A family adds its actions here and in {@link action}, under the next free tag. */
export type Action = Transfer | SetDual | OpenStream | TopUpStream | SettleStreams | CloseStream | IssueClaim | DepositBond | WithdrawBond

export const MAX_PURPOSE_BYTES = 120

export const MAX_SUBJECT_BYTES = 1_024
export const MAX_SCHEMA_BYTES = 64

/** Streams that one transaction settles at most. */
export const MAX_CLAIMS = 256

/** A path in a tree of at most 2^26 checkpoints. */
const MAX_PATH = 26

const claim: P.CoderType<StreamClaim> = P.struct({
  stream: id,
  position: P.U32BE,
  element: P.bytes(ELEMENT_LENGTH),
  jump: maybe(P.struct({ index: P.U32BE, path: list(P.bytes(32), MAX_PATH) })),
})

export const action: P.CoderType<Action> = byKind<Action>({
  transfer: [1, P.struct({ to: id, amount, purpose: text(MAX_PURPOSE_BYTES) })],
  setDual: [2, P.struct({ dual: P.bool })],
  openStream: [
    3,
    P.struct({
      payee: id,
      anchor: P.bytes(ELEMENT_LENGTH),
      salt: P.bytes(SALT_LENGTH),
      checkpointRoot: P.bytes(32),
      length: P.U32BE,
      stepValue: amount,
      escrow: amount,
      lastPulse: count,
    }),
  ],
  topUpStream: [4, P.struct({ stream: id, amount, lastPulse: count })],
  settleStreams: [5, P.struct({ claims: list(claim, MAX_CLAIMS) })],
  closeStream: [6, P.struct({ stream: id })],
  issueClaim: [
    13,
    P.struct({
      subject: text(MAX_SUBJECT_BYTES),
      schema: text(MAX_SCHEMA_BYTES),
      formula,
      adjudicator: maybe(atom),
      detection: P.U16BE,
      lastPulse: count,
    }),
  ],
  depositBond: [14, P.struct({ label: text(MAX_LABEL_BYTES), amount })],
  withdrawBond: [15, P.struct({ label: text(MAX_LABEL_BYTES), amount })],
})
