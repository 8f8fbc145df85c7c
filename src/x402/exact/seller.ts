import { SionError, toHex, type Id } from '../../codec/index.js'
import { randomBytes } from '../../crypto/runtime.js'
import { networkOf } from '../../pulse/index.js'
import { isCode, refuse, type Refusal } from '../codes.js'
import { SETTLEMENT_PENDING, type Facilitator } from '../facilitator.js'
import type { NonceStore } from '../nonce-store.js'
import { refusalOf } from '../refusal-of.js'
import { checkNonce, expiryOf, issueNonce, type QuoteTerms } from '../quote.js'
import type { Accepted, Charge, SellerScheme } from '../scheme.js'
import type { SettleResponse } from '../wire.js'
import { settlementAsker } from './asker.js'
import { checkBody, parseExactPayload } from './payment.js'
import { checkAccepted, exactRequirements, nonceOf } from './terms.js'

/** A claim that is not renewed for this long is up for the same payment: a server that died is waited for no longer. */
const LEASE_MS = 5_000
const RENEW_MS = 1_500
/** How long a copy of a payment waits for the outcome of the first before it is told to come again. */
const HELD_WAIT_MS = 10_000
const HELD_POLL_MS = 100
/**
 * A payment that was bound while its quote was fresh stays good this long after it expired: a ledger that was away must
 * not cost the buyer what it paid.
 */
const GRACE_SECONDS = 3_600
/**
 * Records outlive the grace by more than any clock is wrong and any settlement lasts: a record forgotten between the look
 * at it and the claim would let a spent payment buy again.
 */
const KEEP_SECONDS = GRACE_SECONDS + 600

export interface ExactSellerOptions {
  readonly payee: Id
  readonly facilitator: Facilitator
  readonly store: NonceStore
  readonly now: () => number
}

/** The `exact` scheme of a seller: stateless quotes, one ledger transaction for each request, each nonce once. */
export function exactSeller({ payee, facilitator, store, now }: ExactSellerOptions): SellerScheme {
  const seconds = (): number => Math.floor(now() / 1_000)
  let secret: Promise<Uint8Array> | undefined
  let known: Uint8Array | undefined
  const theSecret = async (): Promise<Uint8Array> => {
    try {
      secret ??= store.secret()
      known = await secret
      return known
    } catch (error) {
      secret = undefined
      throw error
    }
  }
  const nonceFor = (key: Uint8Array, charge: Charge): string => issueNonce(key, termsOf(charge), seconds())
  const termsOf = ({ method, target, amount, chain }: Charge): QuoteTerms => ({ method, target, amount, payee, chain })

  async function claim(nonce: string, payment: Id): Promise<Claim | Refusal> {
    const holder = toHex(randomBytes(16))
    const giveUpAt = now() + HELD_WAIT_MS
    for (;;) {
      const answer = await store.claim({
        nonce,
        payment,
        holder,
        leaseMs: LEASE_MS,
        keepUntil: expiryOf(nonce) + KEEP_SECONDS,
      })
      switch (answer) {
        case 'claimed':
          return startClaim(store, nonce, holder)
        case 'spent':
          return refuse('payment_used', 'this payment has been used: each quote pays for one request')
        case 'bound':
          return refuse('quote_bound', 'another payment stands behind this quote')
        case 'held':
          if (now() >= giveUpAt) {
            return refuse('settlement_pending', SETTLEMENT_PENDING, {
              details: { detail: 'another request with this payment is being served' },
            })
          }
          await new Promise((resolve) => setTimeout(resolve, HELD_POLL_MS))
      }
    }
  }

  return {
    scheme: 'exact',

    async quote(charge) {
      return exactRequirements({ chain: charge.chain, payee, amount: charge.amount, nonce: nonceFor(await theSecret(), charge) })
    },

    quotesDiffer: 'by nonce',
    nonce: (charge) => (known === undefined ? undefined : nonceFor(known, charge)),

    async take(payment, charge) {
      const { accepted } = payment
      const nonce = nonceOf(accepted)
      if (nonce === undefined) {
        return refuse('invalid_payment_requirements', 'accepted.extra.nonce is not the 32 hex digits of a quote')
      }
      const requirements = exactRequirements({ chain: charge.chain, payee, amount: charge.amount, nonce })
      const mismatch = checkAccepted(accepted, requirements)
      if (mismatch !== undefined) return mismatch

      const key = await theSecret()
      const state = checkNonce(key, nonce, termsOf(charge), seconds())
      if (state.kind === 'unknown') {
        return refuse('quote_unknown', 'the nonce was not quoted for this request by this seller')
      }
      const exact = parseExactPayload(payment.payload)
      if (exact.kind === 'transaction') {
        const problem = checkBody(exact.transaction.body, requirements, nonce)
        if (problem !== undefined) return problem
      }
      if (state.kind === 'expired') {
        const known = state.secondsAgo <= GRACE_SECONDS && (await store.boundTo(nonce)) === exact.digest
        if (!known) return refuse('quote_expired', `the quote expired ${state.secondsAgo} s ago`)
      }

      const verified = await outcomeOf(facilitator.verify(payment, requirements))
      if ('kind' in verified) return verified
      if (!verified.isValid) return refusalOf(verified.invalidReason, verified.extensions, verified.payer)

      const claimed = await claim(nonce, exact.digest)
      if (claimed.kind === 'refused') return claimed
      try {
        const settling = facilitator.settle(payment, requirements, settlementAsker(key, exact.digest))
        const settlement = await outcomeOf(settling)
        const problem = 'kind' in settlement ? settlement : checkSettlement(settlement, exact.digest, charge)
        if (problem === undefined && !('kind' in settlement)) return accept(claimed, settlement)
        await claimed.release()
        return problem ?? refuse('settlement_pending', SETTLEMENT_PENDING)
      } catch (error) {
        await claimed.release()
        throw error
      }
    },
  }
}

/** A facilitator that is away may have passed the payment on before: only the ledger knows, so the outcome is open. */
async function outcomeOf<T>(asked: Promise<T>): Promise<T | Refusal> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof SionError && isCode(error.code)) return refuse('settlement_pending', SETTLEMENT_PENDING)
    throw error
  }
}

/** A nonce that this request holds, its lease renewed until it is let go. */
interface Claim {
  readonly kind: 'claimed'
  spend(): Promise<boolean>
  release(): Promise<void>
}

function startClaim(store: NonceStore, nonce: string, holder: string): Claim {
  const renewing = setInterval(() => {
    // A renewal that fails is not the end: `spend` asks the store itself, and only its word counts.
    store.renew(nonce, holder, LEASE_MS).catch(() => undefined)
  }, RENEW_MS)
  return {
    kind: 'claimed',
    async spend() {
      clearInterval(renewing)
      return store.spend(nonce, holder)
    },
    async release() {
      clearInterval(renewing)
      // Where the store is away now, the lease runs out by itself and the payment is good again all the same.
      await store.release(nonce, holder).catch(() => undefined)
    },
  }
}

function accept(claim: Claim, settlement: SettleResponse): Accepted {
  return {
    kind: 'accepted',
    settlement,
    async serve() {
      if (await claim.spend()) return undefined
      return refuse('settlement_pending', SETTLEMENT_PENDING, {
        details: { detail: 'this server was too slow, another has taken the payment over' },
      })
    },
    release: () => claim.release(),
  }
}

/** A facilitator's success must be about this payment: a broken or bought one must not open the door. */
function checkSettlement(settlement: SettleResponse, digest: Id, { chain }: Charge): Refusal | undefined {
  if (!settlement.success) return refusalOf(settlement.errorReason, settlement.extensions, settlement.payer, settlement.transaction)
  if (settlement.transaction !== digest || settlement.network !== networkOf(chain)) {
    throw new SionError('facilitator_unavailable', 'the facilitator answered for another payment than the one it was asked to settle')
  }
  return undefined
}
