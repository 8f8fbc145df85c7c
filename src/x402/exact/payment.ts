import { fromBase64, fromHex, InputError, isId, toBase64, type Id } from '../../codec/index.js'
import { taggedHash } from '../../crypto/hash.js'
import { SIZES } from '../../crypto/keys.js'
import { decodeSigned, digestOf, encodeSigned, type Body, type SignedTransaction } from '../../ledger/index.js'
import { refuse, type Refusal } from '../codes.js'
import { purposeOf } from '../quote.js'
import type { PaymentRequirements } from '../wire.js'

/**
 * What an `exact` payload says: a signed transaction that the seller's side submits, or the digest of one that the
 * payer submitted, with a proof that it was the payer who did. A digest and a nonce are public once a transaction has
 * executed; without the proof, whoever watches the ledger could collect what another paid for.
 */
export type ExactPayment =
  | { readonly kind: 'transaction'; readonly transaction: SignedTransaction; readonly digest: Id }
  | { readonly kind: 'reference'; readonly digest: Id; readonly proof: Uint8Array }

export function transactionPayload(transaction: SignedTransaction): Record<string, unknown> {
  return { transaction: toBase64(encodeSigned(transaction)) }
}

export function referencePayload(digest: Id, proof: Uint8Array): Record<string, unknown> {
  return { digest, proof: toBase64(proof) }
}

/** What the payer signs with ML-DSA-44 to pay by reference. */
export function referenceMessage(digest: Id, nonce: string): Uint8Array {
  return taggedHash('sion/x402-reference/v1', fromHex(digest, 'digest', 32), fromHex(nonce, 'nonce', 16))
}

/** @throws InputError naming the field of a payload that cannot be read. */
export function parseExactPayload(payload: Record<string, unknown>): ExactPayment {
  const { transaction, digest, proof } = payload
  if (transaction !== undefined) {
    const signed = decodeSigned(fromBase64(transaction, 'payload.transaction'))
    return { kind: 'transaction', transaction: signed, digest: digestOf(signed.body) }
  }
  if (digest === undefined) {
    throw new InputError('payload', 'expected `transaction`, or `digest` and `proof`')
  }
  if (!isId(digest)) throw new InputError('payload.digest', 'expected 64 lower-case hex digits')
  const bytes = fromBase64(proof, 'payload.proof')
  if (bytes.length !== SIZES.mlDsaSignature) {
    throw new InputError('payload.proof', `${bytes.length} bytes, an ML-DSA-44 signature has ${SIZES.mlDsaSignature}`)
  }
  return { kind: 'reference', digest, proof: bytes }
}

/** Whether the transaction does what was quoted: this amount, to this payee, for this nonce, on this chain. */
export function checkBody(body: Body, requirements: PaymentRequirements, nonce: string): Refusal | undefined {
  const payer = body.signer
  const no = (reason: string): Refusal => refuse('invalid_transaction', reason, { payer })
  const { chain } = requirements.extra
  if (body.chain !== chain) return no(`the transaction is for chain ${body.chain.slice(0, 8)}, not ${String(chain).slice(0, 8)}`)
  const { action } = body
  if (action.kind !== 'transfer') return no(`the transaction is a ${action.kind}, not a transfer`)
  if (action.to !== requirements.payTo) {
    return no(`the transaction pays ${action.to.slice(0, 8)}, not ${requirements.payTo.slice(0, 8)}`)
  }
  if (action.amount.toString() !== requirements.amount) {
    return no(`the transaction pays ${action.amount} micro-USD, not ${requirements.amount}`)
  }
  if (action.purpose !== purposeOf(nonce)) return no('the transaction’s purpose is not that of the quote')
  return undefined
}
