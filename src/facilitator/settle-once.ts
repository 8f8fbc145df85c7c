import { SionError, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { randomBytes } from '../crypto/runtime.js'
import { refuse, type Refusal } from '../x402/codes.js'
import { SETTLEMENT_PENDING } from '../x402/facilitator.js'
import type { NonceStore } from '../x402/nonce-store.js'
import type { SettleResponse } from '../x402/wire.js'

/** Renewed while the ledger is waited for; what a facilitator that died held is free again after it. */
const LEASE_MS = 5_000
const RENEW_MS = 1_500
const HELD_WAIT_MS = 30_000
const HELD_POLL_MS = 100
/** A ledger executes a transaction once and shows its receipt for ever, so who was answered is kept as long. */
const KEEP_UNTIL = 2 ** 32 - 1

const encoder = new TextEncoder()

/** A settlement and what must be said of its delivery. */
export interface SettlingOnce {
  readonly response: SettleResponse
  /** The answer reached its asker, or did not: then the payment may be asked about again. */
  delivered(arrived: boolean): Promise<void>
}

/**
 * Lets a payment settle for one asker. The records are those of a seller's quotes (see NonceStore), with the payment in
 * the nonce's place and the asker in the payment's:
 *
 *   - the first asker takes the payment, and others are refused from then on;
 *   - an asker with a name gets the same success as often as it asks;
 *   - one without a name gets it once, but again if the answer did not reach it.
 */
export async function settleOnce(
  store: NonceStore,
  payment: Id,
  asker: string | undefined,
  settle: () => Promise<SettleResponse>,
): Promise<SettlingOnce | Refusal> {
  const nonce = toHex(taggedHash('sion/settled-payment/v1', encoder.encode(payment))).slice(0, 32)
  const who = toHex(taggedHash('sion/settlement-asker/v1', encoder.encode(asker ?? '')))
  const holder = toHex(randomBytes(16))
  const giveUpAt = Date.now() + HELD_WAIT_MS

  for (;;) {
    const answer = await store.claim({ nonce, payment: who, holder, leaseMs: LEASE_MS, keepUntil: KEEP_UNTIL })
    if (answer === 'claimed') break
    if (answer === 'bound') return refuse('payment_used', 'this payment is another asker’s: it settles once')
    if (answer === 'spent') {
      if (asker === undefined) return refuse('payment_used', 'this payment has been settled: it settles once')
      return { response: await settle(), delivered: async () => {} }
    }
    if (Date.now() >= giveUpAt) return refuse('settlement_pending', SETTLEMENT_PENDING)
    await new Promise((resolve) => setTimeout(resolve, HELD_POLL_MS))
  }

  const renewing = setInterval(() => {
    // A renewal that fails is not the end: `spend` asks the store itself, and only its word counts.
    store.renew(nonce, holder, LEASE_MS).catch(() => undefined)
  }, RENEW_MS)
  async function end(spent: boolean): Promise<void> {
    clearInterval(renewing)
    if (!spent) await store.release(nonce, holder)
    else if (!(await store.spend(nonce, holder))) throw new SionError('store_unavailable', 'the settlement took longer than its lease')
  }

  let response: SettleResponse
  try {
    response = await settle()
    // Who has a name may ask again for the same, so it is on record before the answer; others only get it once.
    if (!response.success || asker !== undefined) await end(response.success)
  } catch (error) {
    await end(false).catch(() => undefined)
    throw error
  }
  if (!response.success || asker !== undefined) return { response, delivered: async () => {} }
  return { response, delivered: end }
}
