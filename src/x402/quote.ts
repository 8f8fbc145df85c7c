import { fromHex, toHex, type Id, type MicroUsd } from '../codec/index.js'
import { equalBytes, hmacSha256 } from '../crypto/hmac.js'
import { randomBytes } from '../crypto/runtime.js'

/** A quote pays for one request within this many seconds. */
export const QUOTE_SECONDS = 300

/** What a quote is for. A nonce of one of these is nothing for another. */
export interface QuoteTerms {
  /** The request's method; a `HEAD` is quoted as the `GET` it stands for. */
  readonly method: string
  /** Path with query, as it was requested. */
  readonly target: string
  readonly amount: MicroUsd
  readonly payee: Id
  readonly chain: Id
}

/** What a nonce is to this seller now. */
export type QuoteState = { readonly kind: 'fresh' } | { readonly kind: 'expired'; readonly secondsAgo: number } | { readonly kind: 'unknown' }

const encoder = new TextEncoder()

/**
 * A nonce, 16 bytes in hex: expiry (4, seconds since the Unix epoch), random (6), truncated HMAC (6) over both and the
 * terms. Issuing one stores nothing, so no flood of unpaid requests fills a store; a forger has one chance in 2^48.
 *
 * @param secret 32 bytes that all of a seller's servers share.
 */
export function issueNonce(secret: Uint8Array, terms: QuoteTerms, nowSeconds: number): string {
  const nonce = new Uint8Array(16)
  new DataView(nonce.buffer).setUint32(0, nowSeconds + QUOTE_SECONDS)
  nonce.set(randomBytes(6), 4)
  nonce.set(mac(secret, nonce.subarray(0, 10), terms), 10)
  return toHex(nonce)
}

/**
 * Whether a nonce was issued by this seller for these terms, and whether it has expired. In its last second it is fresh:
 * it expires when the clock has passed its expiry.
 */
export function checkNonce(secret: Uint8Array, nonce: string, terms: QuoteTerms, nowSeconds: number): QuoteState {
  const bytes = fromHex(nonce, 'nonce', 16)
  if (!equalBytes(mac(secret, bytes.subarray(0, 10), terms), bytes.subarray(10))) return { kind: 'unknown' }
  const secondsAgo = nowSeconds - expiryOf(nonce)
  return secondsAgo > 0 ? { kind: 'expired', secondsAgo } : { kind: 'fresh' }
}

/** When a nonce expires, in seconds since the Unix epoch. True only of a nonce that {@link checkNonce} knows. */
export function expiryOf(nonce: string): number {
  return Number.parseInt(nonce.slice(0, 8), 16)
}

/** The purpose a payment for this quote must name. */
export function purposeOf(nonce: string): string {
  return `x402:${nonce}`
}

function mac(secret: Uint8Array, head: Uint8Array, terms: QuoteTerms): Uint8Array {
  const method = encoder.encode(terms.method)
  const target = encoder.encode(terms.target)
  const message = new Uint8Array(10 + 2 + method.length + 4 + target.length + 8 + 64)
  const view = new DataView(message.buffer)
  message.set(head)
  // Lengths first: no two different terms may give one message.
  view.setUint16(10, method.length)
  message.set(method, 12)
  let at = 12 + method.length
  view.setUint32(at, target.length)
  message.set(target, at + 4)
  at += 4 + target.length
  view.setBigUint64(at, terms.amount)
  message.set(fromHex(terms.payee, 'payee', 32), at + 8)
  message.set(fromHex(terms.chain, 'chain', 32), at + 40)
  return hmacSha256(secret, message).subarray(0, 6)
}
