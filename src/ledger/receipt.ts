import * as P from 'micro-packed'
import { amount, byKind, count, id, list, text, unpack, type Id } from '../codec/index.js'
import { MAX_LABEL_BYTES } from './formula.js'

/** Money moved, by asset: what each account got. */
export interface Transferred {
  readonly kind: 'Transferred'
  readonly asset: Id
  readonly outputs: [account: Id, amount: bigint][]
}

/** An account now needs both signatures, or one again. */
export interface DualSet {
  readonly kind: 'DualSet'
  readonly account: Id
  readonly dual: boolean
}

export interface StreamOpened {
  readonly kind: 'StreamOpened'
  readonly stream: Id
  readonly payer: Id
  readonly payee: Id
  readonly escrow: bigint
  readonly lastPulse: number
}

export interface StreamToppedUp {
  readonly kind: 'StreamToppedUp'
  readonly stream: Id
  readonly amount: bigint
  /** Ever put in, this included. */
  readonly escrow: bigint
  readonly lastPulse: number
}

/** The payee was paid up to `position`. */
export interface StreamSettled {
  readonly kind: 'StreamSettled'
  readonly stream: Id
  readonly payee: Id
  readonly position: number
  readonly amount: bigint
}

/** One claim of a settlement that proved nothing; the others are not touched by it. */
export interface StreamClaimRefused {
  readonly kind: 'StreamClaimRefused'
  readonly stream: Id
  readonly code: string
  readonly reason: string
}

export interface StreamClosed {
  readonly kind: 'StreamClosed'
  readonly stream: Id
  readonly payer: Id
  /** What went back to the payer. */
  readonly refund: bigint
}

/** A claim is on record. Its place in the knowledge log is the Pulse's to say (`ClaimIssued`, `issuedClaims`). */
export interface ClaimSubmitted {
  readonly kind: 'ClaimSubmitted'
  readonly claim: Id
}

export interface BondDeposited {
  readonly kind: 'BondDeposited'
  readonly bond: Id
  readonly owner: Id
  readonly label: string
  readonly added: bigint
  /** All that it holds now. */
  readonly amount: bigint
}

export interface BondWithdrawn {
  readonly kind: 'BondWithdrawn'
  readonly bond: Id
  readonly owner: Id
  readonly label: string
  readonly taken: bigint
  /** What is left in it. */
  readonly amount: bigint
}

/** Everything that can have happened. A family adds its events here and in {@link event}, under the next free tag. */
export type LedgerEvent =
  | Transferred
  | DualSet
  | StreamOpened
  | StreamToppedUp
  | StreamSettled
  | StreamClaimRefused
  | StreamClosed
  | ClaimSubmitted
  | BondDeposited
  | BondWithdrawn

/** Success, or the reason why nothing but the fee happened. */
export type Outcome = { readonly kind: 'success' } | { readonly kind: 'failed'; readonly reason: string }

/** What became of one transaction. */
export interface Receipt {
  readonly digest: Id
  /** Its place in the Pulse's certified order. */
  readonly index: number
  readonly pulse: number
  readonly outcome: Outcome
  readonly fee: bigint
  readonly events: LedgerEvent[]
}

const event = byKind<LedgerEvent>({
  Transferred: [1, P.struct({ asset: id, outputs: list(P.tuple([id, amount] as const), 1_024) })],
  DualSet: [2, P.struct({ account: id, dual: P.bool })],
  StreamOpened: [3, P.struct({ stream: id, payer: id, payee: id, escrow: amount, lastPulse: count })],
  StreamToppedUp: [4, P.struct({ stream: id, amount, escrow: amount, lastPulse: count })],
  StreamSettled: [5, P.struct({ stream: id, payee: id, position: P.U32BE, amount })],
  StreamClaimRefused: [6, P.struct({ stream: id, code: text(64), reason: text(255) })],
  StreamClosed: [7, P.struct({ stream: id, payer: id, refund: amount })],
  ClaimSubmitted: [14, P.struct({ claim: id })],
  BondDeposited: [15, P.struct({ bond: id, owner: id, label: text(MAX_LABEL_BYTES), added: amount, amount })],
  BondWithdrawn: [16, P.struct({ bond: id, owner: id, label: text(MAX_LABEL_BYTES), taken: amount, amount })],
})

const outcome = byKind<Outcome>({
  success: [0, P.struct({})],
  failed: [1, P.struct({ reason: text(512) })],
})

const receipt: P.CoderType<Receipt> = P.struct({ digest: id, index: P.U32BE, pulse: count, outcome, fee: amount, events: list(event, 1_024) })

/** The bytes that the receipts tree commits to. */
export function encodeReceipt(value: Receipt): Uint8Array {
  return receipt.encode(value)
}

/** @throws InputError unless `bytes` are the canonical encoding of a receipt. */
export function decodeReceipt(bytes: Uint8Array): Receipt {
  return unpack(receipt, bytes, 'receipt')
}

/** An event as the reference's JSON shows it: `{ "Transferred": { … } }`, amounts as numbers (exact below 2^53). */
export function eventJson(value: LedgerEvent): Record<string, unknown> {
  switch (value.kind) {
    case 'Transferred':
      return {
        Transferred: { asset: value.asset, outputs: value.outputs.map(([account, paid]) => [account, Number(paid)]) },
      }
    case 'DualSet':
      return { DualSet: { account: value.account, dual: value.dual } }
    case 'StreamOpened': {
      const { stream, payer, payee, escrow, lastPulse } = value
      return { StreamOpened: { stream, payer, payee, escrow: Number(escrow), last_pulse: lastPulse } }
    }
    case 'StreamToppedUp': {
      const { stream, amount: added, escrow, lastPulse } = value
      return { StreamToppedUp: { stream, amount: Number(added), escrow: Number(escrow), last_pulse: lastPulse } }
    }
    case 'StreamSettled': {
      const { stream, payee, position, amount: paid } = value
      return { StreamSettled: { stream, payee, position, amount: Number(paid) } }
    }
    case 'StreamClaimRefused':
      return { StreamClaimRefused: { stream: value.stream, code: value.code, reason: value.reason } }
    case 'StreamClosed':
      return { StreamClosed: { stream: value.stream, payer: value.payer, refund: Number(value.refund) } }
    case 'ClaimSubmitted':
      return { ClaimSubmitted: { claim: value.claim } }
    case 'BondDeposited': {
      const { bond, owner, label, added, amount: held } = value
      return { BondDeposited: { bond, owner, label, added: Number(added), amount: Number(held) } }
    }
    case 'BondWithdrawn': {
      const { bond, owner, label, taken, amount: left } = value
      return { BondWithdrawn: { bond, owner, label, taken: Number(taken), amount: Number(left) } }
    }
  }
}

/** An outcome as the reference's JSON shows it as `status`. */
export function statusJson(value: Outcome): 'Success' | { Failed: string } {
  return value.kind === 'success' ? 'Success' : { Failed: value.reason }
}
