import type { Id } from '../codec/index.js'
import type { Action, SignedTransaction } from '../ledger/index.js'

/** A transaction that was taken and is not certified yet. */
export interface Pending {
  readonly digest: Id
  readonly tx: SignedTransaction
  /** As submitted. */
  readonly bytes: Uint8Array
  /** What it can take from its signer at most, in micro-USD. */
  readonly spend: bigint
  /** The Pulse it was promised for. */
  readonly pulse: number
  /** When it came, on the monotonic clock, in milliseconds. */
  readonly since: number
}

const REMEMBERED_DROPS = 1_000

/**
 * What is pending, in the order in which it came: first waiting, its money reserved and its nonce taken; then in flight,
 * in a proposal, whose effects say both better.
 */
export class Mempool {
  readonly #waiting = new Map<Id, Pending>()
  readonly #inFlight = new Map<Id, Pending>()
  readonly #reserved = new Map<Id, bigint>()
  readonly #nonces = new Set<string>()

  readonly #dropped = new Map<Id, string>()

  /** How many wait. */
  get size(): number {
    return this.#waiting.size
  }

  /** When the one that waits longest came. */
  get oldest(): number | undefined {
    for (const { since } of this.#waiting.values()) return since
    return undefined
  }

  find(digest: Id): Pending | undefined {
    return this.#waiting.get(digest) ?? this.#inFlight.get(digest)
  }

  /** Whether a waiting transaction uses this nonce. */
  takes(signer: Id, nonce: string): boolean {
    return this.#nonces.has(signer + nonce)
  }

  /** Micro-USD that the waiting transactions of `signer` may take. */
  reserved(signer: Id): bigint {
    return this.#reserved.get(signer) ?? 0n
  }

  add(pending: Pending): void {
    const { signer, nonce } = pending.tx.body
    this.#dropped.delete(pending.digest)
    this.#waiting.set(pending.digest, pending)
    this.#nonces.add(signer + nonce)
    this.#reserved.set(signer, this.reserved(signer) + pending.spend)
  }

  /** The first that wait, as many as weigh at most `most` together, and one at least. */
  first(most: number): SignedTransaction[] {
    const batch: SignedTransaction[] = []
    let weight = 0
    for (const { tx } of this.#waiting.values()) {
      weight += weightOf(tx.body.action)
      if (weight > most && batch.length > 0) break
      batch.push(tx)
    }
    return batch
  }

  /** They are in a proposal now. */
  propose(digests: Iterable<Id>): void {
    for (const digest of digests) {
      const pending = this.#remove(digest)
      if (pending !== undefined) this.#inFlight.set(digest, pending)
    }
  }

  /** What was in flight is certified. */
  certified(): void {
    this.#inFlight.clear()
  }

  /** No Pulse can hold it any more. False if it did not wait. */
  drop(digest: Id, reason: string): boolean {
    if (this.#remove(digest) === undefined) return false
    this.#dropped.set(digest, reason)
    for (const oldest of this.#dropped.keys()) {
      if (this.#dropped.size <= REMEMBERED_DROPS) break
      this.#dropped.delete(oldest)
    }
    return true
  }

  /** Why it was dropped, lately. Whoever waits for its receipt waits in vain. */
  whyDropped(digest: Id): string | undefined {
    return this.#dropped.get(digest)
  }

  #remove(digest: Id): Pending | undefined {
    const pending = this.#waiting.get(digest)
    if (pending === undefined) return undefined
    const { signer, nonce } = pending.tx.body
    this.#waiting.delete(digest)
    this.#nonces.delete(signer + nonce)
    const left = this.reserved(signer) - pending.spend
    if (left > 0n) this.#reserved.set(signer, left)
    else this.#reserved.delete(signer)
    return pending
  }
}

/** What executing it costs the node, against a transfer: about 0.1 ms, or a walk of thousands of hashes. */
function weightOf(action: Action): number {
  return action.kind === 'settleStreams' ? 1 + 4 * action.claims.length : 1
}
