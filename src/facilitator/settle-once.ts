import { SionError, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { randomBytes } from '../crypto/runtime.js'
import { refuse, type Refusal } from '../x402/codes.js'
import { SETTLEMENT_PENDING } from '../x402/facilitator.js'
import type { NonceStore } from '../x402/nonce-store.js'
import type { SettleResponse } from '../x402/wire.js'

const LEASE_MS = 60_000
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

  let response: SettleResponse
  try {
    response = await settle()
    if (response.success && asker !== undefined && !(await store.spend(nonce, holder))) {
      throw new SionError('store_unavailable', 'the settlement took longer than its lease')
    }
  } catch (error) {
    await store.release(nonce, holder).catch(() => undefined)
    throw error
  }
  if (!response.success) {
    await store.release(nonce, holder)
    return { response, delivered: async () => {} }
  }
  return {
    response,
    async delivered(arrived) {
      if (asker !== undefined) return
      if (arrived) await store.spend(nonce, holder)
      else await store.release(nonce, holder)
    },
  }
}
