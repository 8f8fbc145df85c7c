import type { Action } from './actions.js'
import type { Parameters } from './parameters.js'

/** What a transaction with this action costs its signer, executed or failed, in micro-USD. */
export function feeOf(action: Action, { feeBase, feeTouched }: Parameters): bigint {
  switch (action.kind) {
    case 'transfer':
      return feeBase + feeTouched
    case 'setDual':
      return feeBase
  }
}

/** What leaves the signer's account at most: the fee and what the action moves. For reserving money ahead. */
export function spendOf(action: Action, parameters: Parameters): bigint {
  const fee = feeOf(action, parameters)
  return action.kind === 'transfer' ? fee + action.amount : fee
}
