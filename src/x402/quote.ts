import { fromHex, toHex, type Id, type MicroUsd } from '../codec/index.js'
import { equalBytes } from '../crypto/hmac.js'
import { randomBytes } from '../crypto/runtime.js'
import { shortHmac, type ShortHmac } from '../crypto/short-hmac.js'

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
  putUint32(nonce, 0, nowSeconds + QUOTE_SECONDS)
  drawRandom(nonce)
  const mac = macOf(secret, nonce, terms)
  for (let i = 0; i < 6; i++) nonce[10 + i] = mac[i]!
  return toHex(nonce)
}

/** Random bytes drawn ahead: a call for six costs as much as one for thousands. */
const pool = new Uint8Array(6 * 512)
let drawn = pool.length

function drawRandom(nonce: Uint8Array): void {
  if (drawn === pool.length) {
    pool.set(randomBytes(pool.length))
    drawn = 0
  }
  for (let i = 4; i < 10; i++) nonce[i] = pool[drawn++]!
}

/**
 * Whether a nonce was issued by this seller for these terms, and whether it has expired. In its last second it is fresh:
 * it expires when the clock has passed its expiry.
 */
export function checkNonce(secret: Uint8Array, nonce: string, terms: QuoteTerms, nowSeconds: number): QuoteState {
  const bytes = fromHex(nonce, 'nonce', 16)
  if (!equalBytes(macOf(secret, bytes, terms).subarray(0, 6), bytes.subarray(10))) return { kind: 'unknown' }
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

/** Where messages are put together; a longer one gets an array of its own. */
const scratch = new Uint8Array(4_096)

/** The HMAC over a nonce's first ten bytes and the terms; the next call overwrites it. */
function macOf(secret: Uint8Array, nonce: Uint8Array, { method, target, amount, payee, chain }: QuoteTerms): Uint8Array {
  // UTF-8 takes three bytes for each UTF-16 unit at most.
  const most = 10 + 2 + 3 * method.length + 4 + 3 * target.length + 8 + 64
  const message = most <= scratch.length ? scratch : new Uint8Array(most)
  for (let i = 0; i < 10; i++) message[i] = nonce[i]!
  // Lengths first: no two different terms may give one message.
  const methodLength = putText(message, 12, method)
  message[10] = methodLength >>> 8
  message[11] = methodLength
  let at = 12 + methodLength
  const targetLength = putText(message, at + 4, target)
  putUint32(message, at, targetLength)
  at += 4 + targetLength
  putUint32(message, at, Number(amount / 4_294_967_296n))
  putUint32(message, at + 4, Number(amount % 4_294_967_296n))
  message.set(idBytes(payee), at + 8)
  message.set(idBytes(chain), at + 40)
  return hmacOf(secret)(message, at + 72)
}

/** Writes a text's UTF-8 and says how long it is. Short ASCII, which paths are, is written faster by hand. */
function putText(bytes: Uint8Array, at: number, text: string): number {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x80) return encoder.encodeInto(text, bytes.subarray(at)).written
    bytes[at + i] = unit
  }
  return text.length
}

function putUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}

const prepared = new WeakMap<Uint8Array, ShortHmac>()

/** Under a secret that stays: its key is hashed once. */
function hmacOf(secret: Uint8Array): ShortHmac {
  let hmac = prepared.get(secret)
  if (hmac === undefined) prepared.set(secret, (hmac = shortHmac(secret)))
  return hmac
}

/** A seller has one payee and one chain, so the same ids come again and again. */
const known = new Map<Id, Uint8Array>()

function idBytes(id: Id): Uint8Array {
  let bytes = known.get(id)
  if (bytes === undefined) {
    bytes = fromHex(id, 'id', 32)
    if (known.size >= 64) known.clear()
    known.set(id, bytes)
  }
  return bytes
}
