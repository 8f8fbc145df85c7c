import { formatUsd, MAX_AMOUNT, shortId, type Id } from '../../codec/index.js'
import type { SetDual, Transfer } from '../actions.js'
import { USD } from '../ids.js'
import { EMPTY_ACCOUNT, type Account } from '../objects.js'
import type { Rule, StateView } from './rule.js'

/** The account at `id`; one that nobody paid yet is empty. Another kind of object is nobody's account. */
export function accountAt(state: StateView, id: Id): Account | undefined {
  const object = state.get(id)
  if (object === undefined) return EMPTY_ACCOUNT
  return object.kind === 'account' ? object : undefined
}

export const transfer: Rule<Transfer> = (state, action, { signer }) => {
  if (action.amount === 0n) return { failed: 'invalid transaction: a payment of 0 USD' }
  if (action.to === signer) return { failed: 'invalid transaction: a payment to oneself' }
  const from = accountAt(state, signer)
  const to = accountAt(state, action.to)
  if (from === undefined) return { failed: `unauthorized: ${shortId(signer)} is not an account` }
  if (to === undefined) return { failed: `invalid transaction: ${shortId(action.to)} is not an account` }
  if (from.balance < action.amount) {
    return {
      failed: `insufficient balance: ${formatUsd(from.balance)} USD after the fee, below the payment ${formatUsd(action.amount)}`,
    }
  }
  if (to.balance + action.amount > MAX_AMOUNT) return { failed: 'invalid transaction: the payee would hold too much' }
  return {
    writes: new Map([
      [signer, { ...from, balance: from.balance - action.amount }],
      [action.to, { ...to, balance: to.balance + action.amount }],
    ]),
    events: [{ kind: 'Transferred', asset: USD, outputs: [[action.to, action.amount]] }],
  }
}

export const setDual: Rule<SetDual> = (state, action, { signer }) => {
  const account = accountAt(state, signer)
  if (account === undefined) return { failed: `unauthorized: ${shortId(signer)} is not an account` }
  return {
    writes: new Map([[signer, { ...account, dual: action.dual }]]),
    events: [{ kind: 'DualSet', account: signer, dual: action.dual }],
  }
}
