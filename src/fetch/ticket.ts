import { fromBase64, parseMicroUsd, toBase64, type Id, type MicroUsd } from '../codec/index.js'
import { decodeSigned, digestOf, encodeSigned } from '../ledger/index.js'
import type { Signed, Wallet } from '../sdk/index.js'
import { nonceOf } from '../x402/exact/terms.js'
import { referenceMessage, referencePayload, transactionPayload } from '../x402/exact/payment.js'
import { decodePayment, encodePayment, PAYMENT_SIGNATURE } from '../x402/headers.js'
import { X402_VERSION, type PaymentRequirements } from '../x402/wire.js'
import type { Attempt } from './attempts.js'

/** nginx reads a header line into one 8 KiB buffer: name, colon, space, value, line end. */
const HEADER_LINE_BYTES = 8_192
/** A seller honours what it bound in time this long after the quote ended (x402.md, "exact"). */
const GRACE_MS = 3_600_000
/** A payer that submits itself leaves the seller this much of the quote. */
const SUBMIT_MARGIN_MS = 10_000
const LONGEST_QUOTE_SECONDS = 3_600

/** The ticket for a signed payment: the transaction in the header where that fits, else by reference. */
export async function ticketFor(
  wallet: Wallet,
  url: string,
  requirements: PaymentRequirements,
  signed: Signed,
  dual: boolean,
): Promise<Attempt> {
  const quotedMs = Math.min(requirements.maxTimeoutSeconds, LONGEST_QUOTE_SECONDS) * 1_000
  const submitUntil = Date.now() + quotedMs - SUBMIT_MARGIN_MS
  const header = headerOf(requirements, transactionPayload(signed.transaction))
  const attempt = { url, header, transaction: signed.digest, submitUntil, goodUntil: Date.now() + quotedMs + GRACE_MS }
  const fits = !dual && PAYMENT_SIGNATURE.length + 2 + header.length + 2 <= HEADER_LINE_BYTES
  return fits ? attempt : byReference(wallet, attempt, requirements, signed.digest, signed.bytes)
}

export function amountOf({ header }: Attempt): MicroUsd {
  return parseMicroUsd(decodePayment(header).accepted.amount, 'amount')
}

/** The same payment by reference, for a way on which its transaction is too long. Undefined where it is that already. */
export async function shorter(wallet: Wallet, attempt: Attempt): Promise<Attempt | undefined> {
  const { accepted, payload } = decodePayment(attempt.header)
  if (attempt.submit !== undefined || payload['transaction'] === undefined) return undefined
  const transaction = decodeSigned(fromBase64(payload['transaction'], 'payload.transaction'))
  return byReference(wallet, attempt, accepted, digestOf(transaction.body), encodeSigned(transaction))
}

async function byReference(
  wallet: Wallet,
  attempt: Attempt,
  requirements: PaymentRequirements,
  digest: Id,
  bytes: Uint8Array,
): Promise<Attempt> {
  const { mlDsa } = await wallet.sign(referenceMessage(digest, nonceOf(requirements) ?? ''))
  return { ...attempt, header: headerOf(requirements, referencePayload(digest, mlDsa)), submit: toBase64(bytes) }
}

function headerOf(accepted: PaymentRequirements, payload: Record<string, unknown>): string {
  return encodePayment({ x402Version: X402_VERSION, accepted, payload })
}
