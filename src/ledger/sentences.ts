import { formatUsd, shortId, type Id } from '../codec/index.js'
import type { Action } from './actions.js'
import type { LedgerEvent, Outcome } from './receipt.js'
import { feeOf } from './fees.js'
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
  const done = receipt.events.map((event) => doneSentence(event, names)).join(', ')
  return `Done: ${done}; fee ${fee} USD.`
}

function doneSentence(event: LedgerEvent, names: Names): string {
  switch (event.kind) {
    case 'Transferred':
      return event.outputs.map(([account, amount]) => `paid ${formatUsd(amount)} USD to ${names(account)}`).join(', ')
    case 'DualSet':
      return event.dual ? `${names(event.account)} now needs both signatures` : `${names(event.account)} now needs one signature`
  }
}
