import type { Id } from '../../src/codec/index.js'
import { toHex } from '../../src/codec/index.js'
import { randomBytes } from '../../src/crypto/runtime.js'
import { buildTransfer, signTransaction, type Wallet } from '../../src/sdk/index.js'
import { transactionPayload } from '../../src/x402/exact/payment.js'
import { exactRequirements } from '../../src/x402/exact/terms.js'
import { encodePayment } from '../../src/x402/headers.js'
import { purposeOf } from '../../src/x402/quote.js'
import { parsePaymentRequired, type PaymentPayload, type PaymentRequirements } from '../../src/x402/wire.js'
import type { Market } from './market.js'

/** What some seller might ask: a nonce of nobody's, which a facilitator does not mind. */
export function someRequirements(market: Market, payee: Id, amount = 250_000n): PaymentRequirements {
  return exactRequirements({ chain: market.node.chain, payee, amount, nonce: toHex(randomBytes(16)) })
}

/** A payment for exactly these requirements, signed and not sent. */
export async function signedPayment(
  market: Market,
  wallet: Wallet,
  accepted: PaymentRequirements,
  options: { keysKnown?: boolean; validForPulses?: number } = {},
): Promise<PaymentPayload & { digest: Id; header: string }> {
  const { keysKnown = false, validForPulses = 600 } = options
  const body = buildTransfer({
    wallet,
    chain: market.node.chain,
    pulse: (await market.api.status()).certified_pulse,
    to: accepted.payTo,
    amount: BigInt(accepted.amount),
    purpose: purposeOf(String(accepted.extra['nonce'])),
    validForPulses,
  })
  const { transaction, digest } = await signTransaction(wallet, body, { keysKnown, dual: false })
  const payment = { x402Version: 2, accepted, payload: transactionPayload(transaction) }
  return { ...payment, digest, header: encodePayment(payment) }
}

/** What a seller asks for a URL now. */
export async function quoted(url: string): Promise<PaymentRequirements> {
  const response = await fetch(url)
  const first = parsePaymentRequired(await response.json()).accepts[0]
  if (response.status !== 402 || first === undefined) throw new Error(`expected a quote, not ${response.status}`)
  return first
}

/** A payment for what a seller asks for a URL, as the header of the request that it buys. */
export async function paymentFor(market: Market, wallet: Wallet, url: string): Promise<{ digest: Id; nonce: string; headers: Record<string, string> }> {
  const requirements = await quoted(url)
  const { digest, header } = await signedPayment(market, wallet, requirements)
  return { digest, nonce: String(requirements.extra['nonce']), headers: { 'payment-signature': header } }
}

/** The code and sentence with which an answer refuses a payment. */
export function refusalIn(response: Response): { code: unknown; reason: unknown; transaction: unknown } {
  const header = response.headers.get('payment-response')
  if (header === null) return { code: undefined, reason: undefined, transaction: undefined }
  const said = JSON.parse(Buffer.from(header, 'base64').toString()) as {
    errorReason?: string
    transaction: string
    extensions?: { sion?: { code?: string } }
  }
  return { code: said.extensions?.sion?.code, reason: said.errorReason, transaction: said.transaction }
}
