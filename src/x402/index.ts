/**
 * x402 version 2 as it travels (docs/x402.md): messages, headers, the `exact` payload, refusal codes. For whoever writes
 * a client, a server or a facilitator of their own.
 */
export { CODES, isCode, type Code, type Refusal } from './codes.js'
export {
  checkBody,
  parseExactPayload,
  referenceMessage,
  referencePayload,
  transactionPayload,
  type ExactPayment,
} from './exact/payment.js'
export { checkAccepted, exactRequirements, nonceOf } from './exact/terms.js'
export { SETTLEMENT_PENDING, type Facilitator } from './facilitator.js'
export {
  decodePayment,
  decodePaymentRequired,
  decodeSettlement,
  encodePayment,
  encodeSettlement,
  MAX_PAYMENT_HEADER_BYTES,
  PAYMENT_REQUIRED,
  PAYMENT_RESPONSE,
  PAYMENT_SIGNATURE,
} from './headers.js'
export type { ClaimAnswer, NonceClaim, NonceStore } from './nonce-store.js'
export { expiryOf, purposeOf, QUOTE_SECONDS } from './quote.js'
export {
  parsePaymentPayload,
  parsePaymentRequired,
  parseRequirements,
  parseSettleResponse,
  X402_VERSION,
  type Network,
  type PaymentPayload,
  type PaymentRequired,
  type PaymentRequirements,
  type ResourceInfo,
  type SettleResponse,
  type SupportedResponse,
  type VerifyResponse,
} from './wire.js'
