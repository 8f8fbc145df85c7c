import { quote, type Id, type MicroUsd } from '../../codec/index.js'
import { networkOf } from '../../pulse/index.js'
import { refuse, type Refusal } from '../codes.js'
import { purposeOf, QUOTE_SECONDS } from '../quote.js'
import type { PaymentRequirements } from '../wire.js'

/** The `exact` entry of a 402: pay exactly `amount` micro-USD to `payee` in one transaction whose purpose names the nonce. */
export function exactRequirements(terms: { chain: Id; payee: Id; amount: MicroUsd; nonce: string }): PaymentRequirements {
  return {
    scheme: 'exact',
    network: networkOf(terms.chain),
    asset: 'USD',
    amount: terms.amount.toString(),
    payTo: terms.payee,
    maxTimeoutSeconds: QUOTE_SECONDS,
    extra: { chain: terms.chain, decimals: 6, nonce: terms.nonce, purpose: purposeOf(terms.nonce) },
  }
}

/** The nonce that requirements carry, if it has the form of one. */
export function nonceOf({ extra }: PaymentRequirements): string | undefined {
  const nonce = extra['nonce']
  return typeof nonce === 'string' && /^[0-9a-f]{32}$/.test(nonce) ? nonce : undefined
}

/**
 * Whether what the client accepted is what was quoted. The first field that differs is named; what the client put beside
 * the quoted fields is its own affair.
 */
export function checkAccepted(accepted: PaymentRequirements, quoted: PaymentRequirements): Refusal | undefined {
  if (accepted.scheme !== quoted.scheme) return differs('unsupported_scheme', 'scheme', accepted.scheme, quoted.scheme)
  if (accepted.network !== quoted.network) return differs('invalid_network', 'network', accepted.network, quoted.network)
  for (const field of ['asset', 'amount', 'payTo'] as const) {
    if (accepted[field] !== quoted[field]) {
      return differs('invalid_payment_requirements', field, accepted[field], quoted[field])
    }
  }
  for (const [name, value] of Object.entries(quoted.extra)) {
    if (accepted.extra[name] !== value) {
      return differs('invalid_payment_requirements', `extra.${name}`, accepted.extra[name], value)
    }
  }
  return undefined
}

function differs(code: 'unsupported_scheme' | 'invalid_network' | 'invalid_payment_requirements', field: string, got: unknown, expected: unknown): Refusal {
  return refuse(code, `accepted.${field} is ${shown(got)}, the quote says ${shown(expected)}`)
}

function shown(value: unknown): string {
  if (typeof value === 'string') return quote(value, 72)
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : 'missing'
}
