import { formatUsd, shortId, type Id } from '../codec/index.js'
import type { Action } from './actions.js'
import type { LedgerEvent, Outcome } from './receipt.js'
import { feeOf } from './fees.js'
import type { Formula } from './formula.js'
import type { Parameters } from './parameters.js'
import type { Body } from './transaction.js'

/** How a sentence calls an account: a name its reader knows, else the first eight digits of its id. */
export type Names = (account: Id) => string

export const shortNames: Names = shortId

/** What a transaction asks, as its signer is shown it: `Pay 1 USD to bob. Fee 0.0011 USD; valid until Pulse 238.` */
export function intentSentence(body: Body, parameters: Parameters, names: Names = shortNames): string {
  const fee = formatUsd(feeOf(body.action, parameters))
  return `${askSentence(body.action, names)}. Fee ${fee} USD; valid until Pulse ${body.validUntil}.`
}

function askSentence(action: Action, names: Names): string {
  switch (action.kind) {
    case 'transfer': {
      const purpose = action.purpose === '' ? '' : ` for ${action.purpose}`
      return `Pay ${formatUsd(action.amount)} USD to ${names(action.to)}${purpose}`
    }
    case 'setDual':
      return action.dual
        ? 'Require both signatures, ML-DSA-44 and SLH-DSA-SHA2-128f, for every transaction from now on'
        : 'Require an ML-DSA-44 signature alone from now on'
    case 'openStream': {
      const { payee, length, stepValue, escrow, lastPulse } = action
      const steps = `${grouped(length)} steps of ${formatUsd(stepValue)} USD`
      return `Open a stream to ${names(payee)}: ${steps}, ${formatUsd(escrow)} USD in escrow until Pulse ${lastPulse}`
    }
    case 'topUpStream':
      return `Top up stream ${shortId(action.stream)} by ${formatUsd(action.amount)} USD, until Pulse ${action.lastPulse}`
    case 'settleStreams':
      return `Settle ${counted(action.claims.length, 'stream')}, paying ${payeesOf(action.claims.length)}`
    case 'closeStream':
      return `Close stream ${shortId(action.stream)}, what is not settled going back to its payer`
    case 'issueClaim': {
      const { subject, schema, formula, adjudicator, detection, lastPulse } = action
      const judged = adjudicator === undefined ? '' : `, judged by ${formulaSentence(adjudicator)}`
      const found = detection === 1_000 ? '' : `, a falsehood found out in ${detection} of 1000 cases`
      return `Claim “${subject}” (${schema}), resting on ${formulaSentence(formula)}${judged}${found}, until Pulse ${lastPulse}`
    }
    case 'depositBond':
      return `Put ${formatUsd(action.amount)} USD into the bond ${action.label}`
    case 'withdrawBond':
      return `Take ${formatUsd(action.amount)} USD back from the bond ${action.label}`
  }
}

/** What became of it: `Done: paid 1 USD to bob; fee 0.0011 USD.` or why it failed. */
export function receiptSentence(
  receipt: { readonly outcome: Outcome; readonly fee: bigint; readonly events: readonly LedgerEvent[] },
  names: Names = shortNames,
): string {
  const fee = formatUsd(receipt.fee)
  if (receipt.outcome.kind === 'failed') {
    return `Failed (${receipt.outcome.reason}); nothing happened except the fee of ${fee} USD.`
  }
  return `Done: ${doneSentences(receipt.events, names)}; fee ${fee} USD.`
}

/** More claims than a reader takes in at once are added up. */
const LISTED = 3

function doneSentences(events: readonly LedgerEvent[], names: Names): string {
  if (events.length <= LISTED) return events.map((event) => doneSentence(event, names)).join(', ')
  const settled = events.filter((event) => event.kind === 'StreamSettled')
  const refused = events.filter((event) => event.kind === 'StreamClaimRefused')
  const paid = settled.reduce((sum, { amount }) => sum + amount, 0n)
  const settledSentence = `${counted(settled.length, 'stream')} settled, ${formatUsd(paid)} USD paid to ${payeesOf(settled.length)}`
  return refused.length === 0 ? settledSentence : `${settledSentence}, ${counted(refused.length, 'claim')} refused`
}

function doneSentence(event: LedgerEvent, names: Names): string {
  switch (event.kind) {
    case 'Transferred':
      return event.outputs.map(([account, amount]) => `paid ${formatUsd(amount)} USD to ${names(account)}`).join(', ')
    case 'DualSet':
      return event.dual ? `${names(event.account)} now needs both signatures` : `${names(event.account)} now needs one signature`
    case 'StreamOpened':
      return `stream ${shortId(event.stream)} opened`
    case 'StreamToppedUp':
      return `stream ${shortId(event.stream)} topped up by ${formatUsd(event.amount)} USD, until Pulse ${event.lastPulse}`
    case 'StreamSettled':
      return `stream ${shortId(event.stream)} settled up to position ${event.position}, ${formatUsd(event.amount)} USD paid to ${names(event.payee)}`
    case 'StreamClaimRefused':
      return `claim on stream ${shortId(event.stream)} refused (${event.reason})`
    case 'StreamClosed':
      return `stream ${shortId(event.stream)} closed, ${formatUsd(event.refund)} USD back to ${names(event.payer)}`
    case 'ClaimSubmitted':
      return `claim ${shortId(event.claim)} submitted`
    case 'BondDeposited':
      return `bond ${event.label} of ${names(event.owner)} holds ${formatUsd(event.amount)} USD`
    case 'BondWithdrawn':
      return `${formatUsd(event.taken)} USD taken back from the bond ${event.label}, which holds ${formatUsd(event.amount)} USD`
  }
}

/** A formula as `all of (ML-DSA-44, the bond task)`: as deep as it is. */
function formulaSentence(formula: Formula): string {
  switch (formula.kind) {
    case 'signature':
      return formula.family
    case 'bond':
      return `the bond ${formula.label}`
    case 'allOf':
      return `all of (${formula.of.map(formulaSentence).join(', ')})`
    case 'anyOf':
      return `any of (${formula.of.map(formulaSentence).join(', ')})`
    case 'kOf':
      return `${formula.k} of (${formula.of.map(formulaSentence).join(', ')})`
  }
}

function payeesOf(streams: number): string {
  return streams === 1 ? 'its payee' : 'their payees'
}

function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? '' : 's'}`
}

function grouped(count: number): string {
  return count.toString().replace(/\B(?=(\d{3})+$)/g, ',')
}
