import type { Action } from './actions.js'
import type { Parameters } from './parameters.js'

/** What a transaction with this action costs its signer, executed or failed, in micro-USD. */
export function feeOf(action: Action, { feeBase, feeTouched, feeCreated }: Parameters): bigint {
  switch (action.kind) {
    case 'setDual':
      return feeBase
    case 'transfer':
    case 'topUpStream':
    case 'closeStream':
    case 'withdrawBond':
      return feeBase + feeTouched
    case 'issueClaim':
    case 'depositBond':
      return feeBase + feeCreated
    case 'openStream':
      return feeBase + feeTouched + feeCreated
    case 'settleStreams':
      return feeBase + feeTouched * BigInt(action.claims.length)
  }
}

/** What leaves the signer's account at most: the fee and what the action moves. For reserving money ahead. */
export function spendOf(action: Action, parameters: Parameters): bigint {
  return feeOf(action, parameters) + movedBy(action)
}

function movedBy(action: Action): bigint {
  switch (action.kind) {
    case 'transfer':
    case 'topUpStream':
    case 'depositBond':
      return action.amount
    case 'openStream':
      return action.escrow
    default:
      return 0n
  }
}
