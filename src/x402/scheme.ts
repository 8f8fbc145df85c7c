import type { Id, MicroUsd } from '../codec/index.js'
import type { Refusal } from './codes.js'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from './wire.js'

/** What one request is quoted and checked against. */
export interface Charge {
  readonly method: string
  /** Path with query, as requested. */
  readonly target: string
  readonly amount: MicroUsd
  readonly chain: Id
}

/**
 * A payment that was taken, while its request is being answered. Exactly one of `serve` and `release` ends it, and
 * before any of the content leaves.
 */
export interface Accepted {
  readonly kind: 'accepted'
  readonly settlement: SettleResponse
  /** The handler answered: the payment has bought it. A refusal means the payment is no longer this request's. */
  serve(): Promise<Refusal | undefined>
  /**
   * {@link serve} for a scheme in which the payment is this request's for certain once it was taken: there is nothing to
   * wait for, and nothing to hold back.
   */
  serveNow?(): void
  /** The handler failed, or its client went away: the same payment is good again. */
  release(): Promise<void>
}

/** One scheme on the seller's side: what it quotes, and how it takes a payment. */
export interface SellerScheme {
  readonly scheme: string
  /** The entry for a 402; undefined where the scheme cannot serve this charge. */
  quote(charge: Charge): Promise<PaymentRequirements | undefined>
  /** In what {@link quote} differs from call to call for one charge: `extra.nonce` (and what contains it), or anything. */
  readonly quotesDiffer: 'not' | 'by nonce' | 'freely'
  /** A fresh `extra.nonce`; undefined while there can be none without waiting. For schemes whose quotes differ by it. */
  nonce?(charge: Charge): string | undefined
  /**
   * {@link take} straight from the header, where it can be read without parsing; undefined for the long way. For schemes
   * whose payments cost less than a JSON parser.
   */
  takePlain?(header: string, charge: Charge): Promise<Accepted | Refusal> | undefined
  /** Told of a header whose payment {@link take} has looked at and found to be on this charge's terms. */
  learnPlain?(header: string, charge: Charge): void
  /** Takes a payment or says why not. Throws only for what is broken: a store or a facilitator out of reach. */
  take(payment: PaymentPayload, charge: Charge): Promise<Accepted | Refusal>
}
