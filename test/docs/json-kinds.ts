import { fromBase64, parseId, parseUsd } from '../../src/codec/index.js'
import { decodeBody, decodeReceipt, decodeSigned } from '../../src/ledger/index.js'
import { readError } from '../../src/light/answers.js'
import { readStatus } from '../../src/sdk/status.js'
import { parseExactPayload } from '../../src/x402/exact/payment.js'
import { parsePaymentPayload, parsePaymentRequired, parseRequirements, parseSettleResponse, record } from '../../src/x402/wire.js'

/**
 * What the second word of a ```json fence says the block is, and the parser that reads such a thing. A value that a
 * document cuts with `…` is put back in before: any bytes of the right form do.
 */
export const jsonKinds: Record<string, (value: unknown) => void> = {
  'payment-required': (value) => void parsePaymentRequired(value),
  requirements: (value) => void parseRequirements(value, 'requirements'),
  payment: (value) => {
    const payment = parsePaymentPayload(value)
    if (!isCut(payment.payload)) parseExactPayload(payment.payload)
  },
  settlement: (value) => void parseSettleResponse(value),
  'verify-request': (value) => facilitatorRequest(value),
  verification: (value) => {
    const { isValid, payer } = record(value, 'verification')
    if (typeof isValid !== 'boolean') throw new TypeError('isValid')
    if (isValid) parseId(payer, 'payer')
  },
  supported: (value) => {
    const { kinds, extensions, signers } = record(value, 'supported')
    if (!Array.isArray(kinds) || !Array.isArray(extensions)) throw new TypeError('kinds, extensions')
    record(signers, 'signers')
  },
  status: (value) => void readStatus(value),
  account: (value) => {
    const { account, balance } = record(value, 'account')
    parseId(account, 'account')
    parseUsd(balance, 'balance')
  },
  submission: (value) => void decodeSigned(fromBase64(record(value, 'submission')['transaction'], 'transaction')),
  body: (value) => void decodeBody(fromBase64(record(value, 'body')['body'], 'body')),
  receipt: (value) => void decodeReceipt(fromBase64(record(value, 'receipt')['receipt'], 'receipt')),
  error: (value) => {
    if (readError(value) === undefined) throw new TypeError('not an error of the API')
  },
}

function facilitatorRequest(value: unknown): void {
  const { x402Version, paymentPayload, paymentRequirements } = record(value, 'request')
  if (x402Version !== 2) throw new TypeError('x402Version')
  parsePaymentPayload(paymentPayload)
  parseRequirements(paymentRequirements, 'paymentRequirements')
}

function isCut(payload: Record<string, unknown>): boolean {
  return Object.values(payload).some((part) => typeof part === 'string' && part.includes('…'))
}
