import { base64ToText, InputError, textToBase64 } from '../codec/index.js'
import {
  parsePaymentPayload,
  parsePaymentRequired,
  parseSettleResponse,
  type PaymentPayload,
  type PaymentRequired,
  type SettleResponse,
} from './wire.js'

/** The three headers of x402 version 2, each base64 of JSON in UTF-8. */
export const PAYMENT_REQUIRED = 'PAYMENT-REQUIRED'
export const PAYMENT_SIGNATURE = 'PAYMENT-SIGNATURE'
export const PAYMENT_RESPONSE = 'PAYMENT-RESPONSE'

/** A longer `PAYMENT-SIGNATURE` is refused before it is decoded. Ours are at most 8.2 kB. */
export const MAX_PAYMENT_HEADER_BYTES = 12_288

/**
 * Reads `PAYMENT-SIGNATURE`.
 * @throws InputError saying in one line what is wrong with it; never shows what it holds.
 */
export function decodePayment(header: string): PaymentPayload {
  if (header.length > MAX_PAYMENT_HEADER_BYTES) {
    throw new InputError(
      PAYMENT_SIGNATURE,
      `${header.length} bytes, more than the ${MAX_PAYMENT_HEADER_BYTES} a payment may take`,
      { code: 'payment_too_large' },
    )
  }
  return parsePaymentPayload(parseJson(base64ToText(header, PAYMENT_SIGNATURE), PAYMENT_SIGNATURE), 'payment')
}

export function encodePayment(payment: PaymentPayload): string {
  return textToBase64(JSON.stringify(payment))
}

/** Reads `PAYMENT-REQUIRED`. @throws InputError */
export function decodePaymentRequired(header: string): PaymentRequired {
  return parsePaymentRequired(parseJson(base64ToText(header, PAYMENT_REQUIRED), PAYMENT_REQUIRED))
}

/** Reads `PAYMENT-RESPONSE`. @throws InputError */
export function decodeSettlement(header: string): SettleResponse {
  return parseSettleResponse(parseJson(base64ToText(header, PAYMENT_RESPONSE), PAYMENT_RESPONSE))
}

export function encodeSettlement(settlement: SettleResponse): string {
  return textToBase64(JSON.stringify(settlement))
}

function parseJson(text: string, field: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes its input, which is a payment: leave it out.
    throw new InputError(field, 'not JSON under its base64')
  }
}
