import type { Id } from '../codec/index.js'

/** A checkpoint's inclusion path: position 64 × index, leaf number index − 1 (docs/protocol.md §11). */
export interface Jump {
  readonly index: number
  readonly path: readonly Uint8Array[]
}

/** A stream as the ledger has it. The ledger is authoritative for all of this; the desk only ever reads it. */
export interface StreamRecord {
  readonly id: Id
  readonly payer: Id
  readonly payee: Id
  readonly asset: string
  /** e(0). */
  readonly anchor: Uint8Array
  readonly salt: Uint8Array
  /** Root over ⌊length / 64⌋ checkpoints. */
  readonly checkpointRoot: Uint8Array
  readonly length: number
  /** Micro-USD a step. */
  readonly stepValue: bigint
  /** Micro-USD ever put in, what is settled already included. */
  readonly escrow: bigint
  /** Steps paid out so far, and e(settled): where the next walk ends. */
  readonly settled: number
  readonly settledElement: Uint8Array
  /** The payee can settle up to and including this Pulse. */
  readonly lastPulse: number
  readonly state: 'open' | 'closed'
}

/** One stream's part of a settle transaction: by walk down to the settled position, or by jump. */
export interface SettleItem {
  readonly stream: Id
  readonly position: number
  /** e(position). */
  readonly element: Uint8Array
  readonly jump?: Jump
}

/** What became of one item. Settled past what was asked (another server was first) is a success. */
export type SettleResult =
  | { readonly stream: Id; readonly settled: number }
  | { readonly stream: Id; readonly refused: { readonly code: string; readonly reason: string } }

/** Of an executed transaction. Whoever cannot tell whether it executed throws. */
export interface SettleOutcome {
  readonly pulse: number
  readonly results: readonly SettleResult[]
}

/** The desk's view of the ledger. Every answer is proven by the light client; out of reach throws. */
export interface StreamLedger {
  /** The stream as of `pulse`; undefined where the ledger proves that there is none. */
  readStream(stream: Id): Promise<{ readonly stream: StreamRecord; readonly pulse: number } | undefined>
  currentPulse(): Promise<number>
  /** Submits one transaction with these items, at most one a stream, and waits for its receipt. */
  settle(items: readonly SettleItem[]): Promise<SettleOutcome>
}
