import type { Id } from '../codec/index.js'

/**
 * What a seller's servers remember of the quotes that were paid. Authoritative for one thing only: which payment a
 * nonce belongs to, and whether it has bought its answer. A nonce moves so:
 *
 *     (nothing) ── claim ──▶ claimed ── spend ──▶ spent
 *                               │ ▲               │
 *              release, or its  │ │ claim, by the │ release, by the holder that spent it: nothing was
 *              lease runs out   ▼ │ same payment  │ delivered after all
 *                             bound ◀─────────────┘
 *
 * There is no way back to nothing while a record is kept: once a payment stands behind a nonce, another payment never
 * takes its place, since the first may have moved money. Records are kept longer than any nonce is accepted.
 *
 * A connection to a store may break between a step and its answer, and be tried again: each step, taken twice by the same
 * holder, answers what it answered first.
 */
export interface NonceStore {
  /**
   * One atomic step: takes the nonce for `payment`, held by `holder` until the lease ends by the store's own clock. Of
   * any number of concurrent claims of one nonce exactly one is answered `claimed`; its holder is, as often as it asks.
   */
  claim(claim: NonceClaim): Promise<ClaimAnswer>
  /** Extends the holder's lease. False: it no longer holds the nonce. */
  renew(nonce: string, holder: string, leaseMs: number): Promise<boolean>
  /** For ever, as long as records are kept. False: the holder no longer holds the nonce, and must not serve. */
  spend(nonce: string, holder: string): Promise<boolean>
  /**
   * Gives the claim up, also one that was spent but could not be served; the nonce stays bound to its payment. Nothing
   * happens when the holder is not the last one.
   */
  release(nonce: string, holder: string): Promise<void>
  /** The payment a nonce is bound to, if any. */
  boundTo(nonce: string): Promise<Id | undefined>
  /** The seller's secret, 32 bytes; made by the first server that asks. */
  secret(): Promise<Uint8Array>
  close(): Promise<void>
}

export interface NonceClaim {
  readonly nonce: string
  /** Digest of the ledger transaction that pays. */
  readonly payment: Id
  /** Names this one claim: random, never used twice. */
  readonly holder: string
  readonly leaseMs: number
  /** The record is forgotten after this, in seconds since the Unix epoch, and not before. */
  readonly keepUntil: number
}

/** `held`: another request has it now. `bound`: another payment stands behind it. */
export type ClaimAnswer = 'claimed' | 'held' | 'bound' | 'spent'
