import { fromBase64, parseId, parseUsd, toHex } from '../../src/codec/index.js'
import { decodeBody, devnetSeed, digestOf, TREASURY, USD } from '../../src/ledger/index.js'
import { readError } from '../../src/light/answers.js'
import { checkReceipt } from '../../src/light/rules/index.js'
import { decodePath, decodeStateProof } from '../../src/merkle/index.js'
import { decodeHeader } from '../../src/pulse/index.js'
import { walletFromSeed } from '../../src/sdk/index.js'
import { parseExactPayload } from '../../src/x402/exact/payment.js'
import { parseStreamPayload } from '../../src/x402/stream/payment.js'
import { parsePaymentPayload, parsePaymentRequired, parseRequirements, parseSettleResponse, record } from '../../src/x402/wire.js'

/**
 * What the second word of a ```json fence says the block is, and how to tell that it is one: with the parsers and rules
 * that a program would use. A payload that a document cuts with `…` is read no further than to its name.
 */
export const jsonKinds: Record<string, (value: unknown) => void> = {
  'payment-required': (value) => void parsePaymentRequired(value),
  requirements: (value) => void parseRequirements(value, 'requirements'),
  payment: (value) => {
    const payment = parsePaymentPayload(value)
    if (isCut(payment.payload)) return
    if (payment.accepted.scheme === 'stream') parseStreamPayload(payment.payload)
    else parseExactPayload(payment.payload)
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
  account: (value) => {
    const { account, balance } = record(value, 'account')
    parseId(account, 'account')
    parseUsd(balance, 'balance')
  },
  'state-proof': (value) => void decodeStateProof(value, 'proof'),
  body: (value) => {
    const { digest, body } = record(value, 'body')
    if (digestOf(decodeBody(fromBase64(body, 'body'))) !== digest) throw new Error('the body does not hash to its digest')
  },
  receipt: (value) => {
    const { receipt, proof, pulse } = record(value, 'receipt')
    const { index, size, path } = record(proof, 'proof')
    const bytes = fromBase64(receipt, 'receipt')
    const header = decodeHeader(fromBase64(record(pulse, 'pulse')['header'], 'header'))
    const digest = toHex(bytes.subarray(0, 32))
    checkReceipt(bytes, { index: Number(index), size: Number(size), path: decodePath(path, 'path') }, header, digest)
  },
  vectors: (value) => {
    const { devnetWallet, ...shown } = record(value, 'vectors')
    const seed = devnetSeed(String(devnetWallet))
    const known: Record<string, string> = { seed: toHex(seed), account: walletFromSeed(seed).account, treasury: TREASURY, asset: USD }
    for (const [name, hex] of Object.entries(shown)) if (known[name] !== hex) throw new Error(`${name} is ${known[name]}`)
  },
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
