import { randomBytes } from 'node:crypto'
import type { Id } from '../../../src/codec/index.js'
import { SIZES } from '../../../src/crypto/keys.js'
import { digestOf, type Action, type Body } from '../../../src/ledger/index.js'
import { encodePayment } from '../../../src/x402/headers.js'
import { transactionPayload } from '../../../src/x402/exact/payment.js'
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from '../../../src/x402/wire.js'

export const CHAIN: Id = 'c0'.repeat(32)
export const PAYEE: Id = 'ee'.repeat(32)
export const PAYER: Id = 'ab'.repeat(32)

/** A payment as a buyer would make it, but for its signature, which is zeros: the fakes do not look at it. */
export interface MadePayment {
  readonly payload: PaymentPayload
  readonly header: string
  readonly digest: Id
}

export interface PaymentChanges {
  readonly accepted?: (quoted: PaymentRequirements) => PaymentRequirements
  readonly body?: Partial<Body>
  readonly action?: Partial<Extract<Action, { kind: 'transfer' }>>
}

/** Pays the first offer of a 402, apart from what is changed. */
export function pay(required: PaymentRequired, changes: PaymentChanges = {}): MadePayment {
  const quoted = required.accepts[0]
  if (quoted === undefined) throw new Error('nothing is offered')
  const body: Body = {
    chain: CHAIN,
    signer: PAYER,
    nonce: randomBytes(16).toString('hex'),
    validUntil: 100,
    action: {
      kind: 'transfer',
      to: quoted.payTo,
      amount: BigInt(quoted.amount),
      purpose: String(quoted.extra['purpose']),
      ...changes.action,
    },
    ...changes.body,
  }
  const payload: PaymentPayload = {
    x402Version: 2,
    resource: required.resource,
    accepted: changes.accepted?.(quoted) ?? quoted,
    payload: transactionPayload({ body, mlDsa: new Uint8Array(SIZES.mlDsaSignature) }),
  }
  return { payload, header: encodePayment(payload), digest: digestOf(body) }
}
