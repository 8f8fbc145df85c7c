import { messageOf, parseMicroUsd, type Id, type MicroUsd } from '../codec/index.js'
import { networkOf } from '../pulse/index.js'
import { exactRequirements, nonceOf } from '../x402/exact/terms.js'
import { decodePaymentRequired, PAYMENT_REQUIRED } from '../x402/headers.js'
import type { PaymentRequired, PaymentRequirements } from '../x402/wire.js'
import { PaymentError } from './errors.js'

/** An `exact` offer that this payer can pay, every field of it checked. */
export interface Offer {
  readonly requirements: PaymentRequirements
  readonly amount: MicroUsd
  readonly payee: Id
  readonly nonce: string
}

/**
 * What a 402 asks. Undefined where it is not x402 version 2: somebody else's 402, for the caller to look at.
 * @throws PaymentError `malformed_quote`.
 */
export function quoteOf(response: Response): PaymentRequired | undefined {
  const header = response.headers.get(PAYMENT_REQUIRED)
  if (header === null) return undefined
  try {
    return decodePaymentRequired(header)
  } catch (cause) {
    throw new PaymentError('malformed_quote', `the server's quote cannot be read: ${messageOf(cause)}`, { cause })
  }
}

/**
 * The first `exact` offer on the payer's chain. What it names must be all of what it asks: a purpose of its own, another
 * number of decimals or another chain behind the network's short name are no offer.
 *
 * @throws PaymentError `no_payable_offer` saying what was offered.
 */
export function chooseExact({ accepts }: PaymentRequired, chain: Id): Offer {
  for (const requirements of accepts) {
    const offer = readOffer(requirements, chain)
    if (offer !== undefined) return offer
  }
  const offered = accepts.map(({ scheme, network }) => `${scheme} on ${network}`).join(', ') || 'nothing'
  throw new PaymentError('no_payable_offer', `the server does not take exact on ${networkOf(chain)}; it offers ${offered}`)
}

function readOffer(requirements: PaymentRequirements, chain: Id): Offer | undefined {
  const nonce = nonceOf(requirements)
  if (requirements.scheme !== 'exact' || requirements.network !== networkOf(chain) || nonce === undefined) return undefined
  let amount: MicroUsd
  try {
    amount = parseMicroUsd(requirements.amount, 'amount')
  } catch {
    return undefined
  }
  const expected = exactRequirements({ chain, payee: requirements.payTo, amount, nonce })
  const { extra } = requirements
  const same =
    requirements.asset === expected.asset &&
    /^[0-9a-f]{64}$/.test(requirements.payTo) &&
    Object.entries(expected.extra).every(([name, value]) => extra[name] === value)
  return same && amount > 0n ? { requirements, amount, payee: requirements.payTo, nonce } : undefined
}
