import { isId, messageOf, parseMicroUsd, shortId, type Id, type MicroUsd } from '../../codec/index.js'
import { networkOf } from '../../pulse/index.js'
import type { StreamPayer } from '../../sdk/index.js'
import type { PaymentRequired, PaymentRequirements } from '../../x402/wire.js'

/** A `stream` offer that a payer's stream can pay, every field of it checked. */
export interface StreamOffer {
  readonly requirements: PaymentRequirements
  readonly amount: MicroUsd
  readonly payee: Id
  /** Steps of the stream that the amount is. */
  readonly steps: number
  /** Steps that payments under way at the same time may lie apart; 0: one at a time. */
  readonly window: number
}

/** A seller that offers more is taken at this much: it bounds what a payer keeps in mind. */
const WIDEST_WINDOW = 4_096

/** The first `stream` offer that this stream can pay, or one sentence why there is none. */
export function chooseStream({ accepts }: PaymentRequired, payer: StreamPayer): StreamOffer | { readonly problem: string } {
  const { chain } = payer.terms
  let problem: string | undefined
  for (const requirements of accepts) {
    if (requirements.scheme !== 'stream' || requirements.network !== networkOf(chain)) continue
    const offer = readOffer(requirements, payer)
    if ('steps' in offer) return offer
    problem ??= offer.problem
  }
  if (problem !== undefined) return { problem }
  const offered = accepts.map(({ scheme, network }) => `${scheme} on ${network}`).join(', ') || 'nothing'
  return { problem: `the server does not take streams on ${networkOf(chain)}; it offers ${offered}` }
}

/** Whether two offers ask for the same. */
export function sameOffer(one: StreamOffer, other: StreamOffer): boolean {
  return JSON.stringify(one.requirements) === JSON.stringify(other.requirements)
}

function readOffer(requirements: PaymentRequirements, payer: StreamPayer): StreamOffer | { readonly problem: string } {
  const { stream, chain, payee } = payer.terms
  const { asset, payTo, extra } = requirements
  const { window } = extra
  if (asset !== 'USD') return { problem: `the server asks for ${JSON.stringify(asset.slice(0, 16))}, and stream ${shortId(stream)} pays USD` }
  if (!isId(payTo)) return { problem: 'the server names no account to be paid to' }
  if (payTo !== payee) return { problem: `the server is paid at ${payTo}, and stream ${shortId(stream)} pays ${payee}` }
  if (extra['chain'] !== chain) return { problem: `the server is paid on another chain than stream ${shortId(stream)} is on` }
  if (extra['decimals'] !== 6) return { problem: 'the server counts USD in other units than micro-USD' }
  try {
    const amount = parseMicroUsd(requirements.amount, 'amount')
    return { requirements, amount, payee, steps: payer.stepsFor(amount), window: isWindow(window) ? Math.min(window, WIDEST_WINDOW) : 0 }
  } catch (error) {
    return { problem: messageOf(error) }
  }
}

function isWindow(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}
