import type { Id } from '../../codec/index.js'
import { networkOf } from '../../pulse/index.js'
import { refuse, type Refusal } from '../codes.js'
import { checkAccepted } from '../exact/terms.js'
import { SETTLEMENT_PENDING, type Facilitator } from '../facilitator.js'
import { refusalOf } from '../refusal-of.js'
import type { Charge, SellerScheme } from '../scheme.js'
import type { PaymentRequirements } from '../wire.js'
import { parseStreamPayload } from './payment.js'
import { streamRequirements, type StreamOffer } from './terms.js'

/**
 * The `stream` scheme of a seller whose tabs a facilitator keeps: verified before the handler, settled when it has
 * answered and before its answer leaves.
 */
export function remoteStreamSeller({ payee, facilitator }: { payee: Id; facilitator: Facilitator }): SellerScheme {
  let offer: Promise<StreamOffer | undefined> | undefined

  function theOffer(chain: Id): Promise<StreamOffer | undefined> {
    offer ??= askOffer(facilitator, chain)
    offer.catch(() => {
      offer = undefined
    })
    return offer
  }

  async function requirementsFor({ chain, amount }: Charge): Promise<PaymentRequirements | undefined> {
    const terms = await theOffer(chain)
    return terms === undefined ? undefined : streamRequirements({ chain, payee, amount, ...terms })
  }

  return {
    scheme: 'stream',
    quote: requirementsFor,

    async take(payment, charge) {
      const requirements = await requirementsFor(charge)
      if (requirements === undefined) return refuse('unsupported_scheme', 'this seller’s facilitator takes no streams')
      const mismatch = checkAccepted(payment.accepted, requirements)
      if (mismatch !== undefined) return mismatch
      const { stream, position } = parseStreamPayload(payment.payload)
      const verified = await facilitator.verify(payment, requirements)
      if (!verified.isValid) return refusalOf(verified.invalidReason, verified.extensions, verified.payer)
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
          const settled = await facilitator.settle(payment, requirements)
          return settled.success ? undefined : refuse('settlement_pending', SETTLEMENT_PENDING)
        },
        async release() {
          // Where it cannot be told, the facilitator gives the steps back after a while by itself.
          await facilitator.release?.(payment, requirements).catch(() => undefined)
        },
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
