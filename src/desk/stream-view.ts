import { checkpointCount, createWalker, type ChainWalker } from '../crypto/chain-step.js'
import { refusals, type Refusal } from './refusal.js'
import type { StreamRecord } from './stream-ledger.js'

/** The most steps of one payment: what a single request may cost the server in hashes. */
export const MAX_STEPS_PER_PAYMENT = 4_096

/** A stream as last read from the ledger, with what follows from it. Terms never change; escrow and last Pulse grow. */
export class StreamView {
  readonly walker: ChainWalker
  readonly checkpoints: number
  /** Steps that the escrow ever put in covers. */
  readonly affordable: number
  #price = -1n
  #steps: number | Refusal = 0

  constructor(
    readonly record: StreamRecord,
    /** The Pulse it was read at. */
    readonly pulse: number,
    /** When that read began, milliseconds. */
    readonly readAt: number,
  ) {
    this.walker = createWalker(record.salt)
    this.checkpoints = checkpointCount(record.length)
    const steps = record.escrow / record.stepValue
    this.affordable = steps > BigInt(record.length) ? record.length : Number(steps)
  }

  /** How many steps a price is. */
  steps(price: bigint): number | Refusal {
    if (price !== this.#price) {
      this.#price = price
      this.#steps = this.#stepsOf(price)
    }
    return this.#steps
  }

  #stepsOf(price: bigint): number | Refusal {
    const { stepValue } = this.record
    if (price <= 0n || price % stepValue !== 0n) return refusals.wholeSteps(price, stepValue)
    const steps = price / stepValue
    return steps > BigInt(MAX_STEPS_PER_PAYMENT) ? refusals.steps(steps, MAX_STEPS_PER_PAYMENT) : Number(steps)
  }
}

/** Nodes of the inclusion path of leaf `index` in a tree of `size` leaves (RFC 9162 §2.1.3): it follows from these two. */
export function pathLength(size: number, index: number): number {
  let nodes = 0
  let at = index
  for (let last = size - 1; last > 0; last = Math.floor(last / 2)) {
    if (at % 2 === 1 || at < last) nodes++
    at = Math.floor(at / 2)
  }
  return nodes
}
