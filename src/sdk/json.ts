import { formatUsd, type Id, type MicroUsd } from '../codec/index.js'
import { eventJson, receiptSentence, shortNames, statusJson, type Names } from '../ledger/index.js'
import type { VerifiedReceipt } from '../light/index.js'
import type { Outcome } from './transact.js'

/** The JSON that commands and tools print, field for field as the reference shows it. USD is decimal text. */

/** sion_balance */
export interface BalanceJson {
  account: Id
  balances: { amount: string; asset: 'USD' }[]
  pulse: number
}

/** sion_pay, and every other transaction's common part. */
export interface PaymentJson {
  digest: Id
  fee: string
  pulse: number
  receipt: string
  status: 'Success' | { Failed: string }
}

/** Where there is no receipt to show: refused before it entered a Pulse, or not known. */
export type OutcomeJson =
  | PaymentJson
  | { code: string; digest: Id; status: { Refused: string } }
  | { digest: Id; reason: string; status: 'Unknown'; valid_until: number | null }

/** sion_fetch_receipt */
export interface VerifiedReceiptJson {
  certificate: { quorum: number; signed: number }
  chain: Id
  chain_pinned: boolean
  digest: Id
  events: Record<string, unknown>[]
  outcome: 'success' | { failed: string }
  pulse: number
  receipt: string
  verified: true
}

export function balanceJson(account: Id, balance: MicroUsd, pulse: number): BalanceJson {
  return { account, balances: [{ amount: formatUsd(balance), asset: 'USD' }], pulse }
}

export function paymentJson({ receipt }: VerifiedReceipt, names: Names = shortNames): PaymentJson {
  return {
    digest: receipt.digest,
    fee: formatUsd(receipt.fee),
    pulse: receipt.pulse,
    receipt: receiptSentence(receipt, names),
    status: statusJson(receipt.outcome),
  }
}

export function outcomeJson(outcome: Outcome, names: Names = shortNames): OutcomeJson {
  switch (outcome.kind) {
    case 'settled':
    case 'failed':
      return paymentJson(outcome.receipt, names)
    case 'refused':
      return { code: outcome.code, digest: outcome.digest, status: { Refused: outcome.reason } }
    case 'unknown':
      return { digest: outcome.digest, reason: outcome.reason, status: 'Unknown', valid_until: outcome.validUntil ?? null }
  }
}

export function verifiedReceiptJson(verified: VerifiedReceipt, names: Names = shortNames): VerifiedReceiptJson {
  const { receipt, certificate, chain, pinned } = verified
  return {
    certificate: { quorum: Number(certificate.quorum), signed: Number(certificate.signed) },
    chain,
    chain_pinned: pinned,
    digest: receipt.digest,
    events: receipt.events.map(eventJson),
    outcome: receipt.outcome.kind === 'success' ? 'success' : { failed: receipt.outcome.reason },
    pulse: receipt.pulse,
    receipt: receiptSentence(receipt, names),
    verified: true,
  }
}
