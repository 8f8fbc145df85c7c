import type { Id } from '../../codec/index.js'
import type { Accepted as AcceptedSteps, Refusal as DeskRefusal, StreamDesk, StreamPayment } from '../../desk/index.js'
import { networkOf } from '../../pulse/index.js'
import { refuse, type Refusal } from '../codes.js'
import { checkAccepted } from '../exact/terms.js'
import type { Accepted, Charge, SellerScheme } from '../scheme.js'
import type { SettleResponse } from '../wire.js'
import { parseStreamPayload } from './payment.js'
import { PlainHeaders } from './plain-header.js'
import { streamRequirements, type StreamOffer } from './terms.js'

export interface StreamSellerOptions extends StreamOffer {
  readonly payee: Id
  readonly desk: StreamDesk
}

const MOST_PRICES = 256

/** The `stream` scheme of a seller with a desk of its own: a payment costs one hash a step and one write. */
export function streamSeller({ payee, desk, ...offer }: StreamSellerOptions): SellerScheme {
  /** Beginnings of headers that were checked, by the price they were checked against. */
  const plain = new Map<bigint, PlainHeaders>()

  async function takeSteps(payment: StreamPayment, { amount, chain }: Charge): Promise<Accepted | Refusal> {
    const taken = await desk.accept(payment, amount, payee)
    return taken.accepted ? acceptedSteps(taken, chain) : refusedSteps(taken, payment.stream)
  }

  return {
    scheme: 'stream',

    async quote({ chain, amount }) {
      return streamRequirements({ chain, payee, amount, ...offer })
    },

    quotesDiffer: 'not',

    takePlain(header, charge) {
      const payment = plain.get(charge.amount)?.read(header)
      return payment === undefined ? undefined : takeSteps(payment, charge)
    },

    learnPlain(header, { amount }) {
      let headers = plain.get(amount)
      if (headers === undefined) {
        // Prices may be computed, and are then as many as requests: the others go the long way.
        if (plain.size >= MOST_PRICES) return
        headers = new PlainHeaders()
        plain.set(amount, headers)
      }
      headers.learn(header)
    },

    async take({ accepted, payload }, charge) {
      const { chain, amount } = charge
      const mismatch = checkAccepted(accepted, streamRequirements({ chain, payee, amount, ...offer }))
      return mismatch ?? takeSteps(parseStreamPayload(payload), charge)
    },
  }
}

function acceptedSteps(taken: AcceptedSteps, chain: Id): Accepted {
  return {
    kind: 'accepted',
    settlement: streamSettlement(taken, chain),
    async serve() {
      taken.finish()
      return undefined
    },
    serveNow: () => taken.finish(),
    release: () => taken.fail(),
  }
}

/** What the payer is told: nothing is on the ledger yet, so there is no transaction to name. */
export function streamSettlement({ stream, position, payer }: AcceptedSteps, chain: Id): SettleResponse {
  return {
    success: true,
    payer,
    transaction: '',
    network: networkOf(chain),
    extensions: { sion: { stream, position } },
  }
}

/** A desk's refusal, with what an honest client needs in order to go on: where the desk stands. */
export function refusedSteps({ code, reason, position, floor, unused }: DeskRefusal, stream: Id): Refusal {
  return refuse(code, reason, {
    details: {
      stream,
      ...(position === undefined ? {} : { position }),
      ...(floor === undefined ? {} : { floor }),
      ...(unused === undefined ? {} : { unused }),
    },
  })
}
