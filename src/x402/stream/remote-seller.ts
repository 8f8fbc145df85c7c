import { toHex, type Id } from '../../codec/index.js'
import { randomBytes } from '../../crypto/runtime.js'
import { networkOf } from '../../pulse/index.js'
import { refuse, type Refusal } from '../codes.js'
import { checkAccepted } from '../exact/terms.js'
import { SETTLEMENT_PENDING, type Facilitator } from '../facilitator.js'
import { refusalOf } from '../refusal-of.js'
import type { Charge, SellerScheme } from '../scheme.js'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '../wire.js'
import { parseStreamPayload } from './payment.js'
import { streamRequirements, type StreamOffer } from './terms.js'

/**
 * The `stream` scheme of a seller whose tabs a facilitator keeps: verified before the handler, settled when it has
 * answered and before its answer leaves.
 */
export function remoteStreamSeller({ payee, facilitator }: { payee: Id; facilitator: Facilitator }): SellerScheme {
  let offer: Promise<StreamOffer | undefined> | undefined

  /** Asked once, and again when the facilitator takes no streams, or turns out to have other terms since. */
  async function theOffer(chain: Id): Promise<StreamOffer | undefined> {
    const asked = (offer ??= askOffer(facilitator, chain))
    try {
      const answer = await asked
      if (answer === undefined && offer === asked) offer = undefined
      return answer
    } catch (error) {
      if (offer === asked) offer = undefined
      throw error
    }
  }

  async function verify(payment: PaymentPayload, requirements: PaymentRequirements): ReturnType<Facilitator['verify']> {
    try {
      return await facilitator.verify(payment, requirements)
    } catch (error) {
      // The answer may have been lost after the steps were taken: then the same payment is good again.
      await release(payment, requirements)
      throw error
    }
  }

  /** An answer that is lost on the way is asked for again under the same name, and is the same. */
  async function settle(payment: PaymentPayload, requirements: PaymentRequirements): Promise<SettleResponse> {
    const asker = toHex(randomBytes(16))
    try {
      return await facilitator.settle(payment, requirements, asker)
    } catch {
      return facilitator.settle(payment, requirements, asker)
    }
  }

  /** Where the facilitator cannot be told, it gives the steps back after a while by itself. */
  async function release(payment: PaymentPayload, requirements: PaymentRequirements): Promise<void> {
    await facilitator.release?.(payment, requirements).catch(() => undefined)
  }

  async function requirementsFor({ chain, amount }: Charge): Promise<PaymentRequirements | undefined> {
    const terms = await theOffer(chain)
    return terms === undefined ? undefined : streamRequirements({ chain, payee, amount, ...terms })
  }

  return {
    scheme: 'stream',
    quotesDiffer: 'freely',
    quote: requirementsFor,

    async take(payment, charge) {
      const requirements = await requirementsFor(charge)
      if (requirements === undefined) return refuse('unsupported_scheme', 'this seller’s facilitator takes no streams')
      const mismatch = checkAccepted(payment.accepted, requirements)
      if (mismatch !== undefined) return mismatch
      const { stream, position } = parseStreamPayload(payment.payload)
      const verified = await verify(payment, requirements)
      if (!verified.isValid) {
        const refusal = refusalOf(verified.invalidReason, verified.extensions, verified.payer)
        if (refusal.code === 'invalid_payment_requirements') offer = undefined
        return refusal
      }
      return {
        kind: 'accepted',
        settlement: {
          success: true,
          ...(verified.payer === undefined ? {} : { payer: verified.payer }),
          transaction: '',
          network: networkOf(charge.chain),
          extensions: { sion: { stream, position } },
        },
        async serve(): Promise<Refusal | undefined> {
          const settled = await settle(payment, requirements)
          return settled.success ? undefined : refuse('settlement_pending', SETTLEMENT_PENDING)
        },
        release: () => release(payment, requirements),
      }
    },
  }
}

async function askOffer(facilitator: Facilitator, chain: Id): Promise<StreamOffer | undefined> {
  const { kinds } = await facilitator.supported()
  const kind = kinds.find(({ scheme, network }) => scheme === 'stream' && network === networkOf(chain))
  const { margin, window = 0 } = kind?.extra ?? {}
  return typeof margin === 'number' && typeof window === 'number' ? { margin, window } : undefined
}
