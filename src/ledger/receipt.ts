import * as P from 'micro-packed'
import { amount, byKind, count, id, list, text, unpack, type Id } from '../codec/index.js'

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

/** Everything that can have happened. A family adds its events here and in {@link event}, under the next free tag. */
export type LedgerEvent = Transferred | DualSet

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
  }
}

/** An outcome as the reference's JSON shows it as `status`. */
export function statusJson(value: Outcome): 'Success' | { Failed: string } {
  return value.kind === 'success' ? 'Success' : { Failed: value.reason }
}
