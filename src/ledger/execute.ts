import { formatUsd, type Id } from '../codec/index.js'
import type { Action } from './actions.js'
import { feeOf } from './fees.js'
import { restsOnFamily } from './formula.js'
import { accountOf, spentNonceId, TREASURY } from './ids.js'
import type { LedgerObject } from './objects.js'
import type { Parameters } from './parameters.js'
import type { LedgerEvent, Outcome } from './receipt.js'
import type { RuleContext, RuleResult, StateView } from './rules/rule.js'
import { depositBond, issueClaim, withdrawBond } from './rules/claims.js'
import { closeStream, openStream, settleStreams, topUpStream } from './rules/streams.js'
import { accountAt, setDual, transfer } from './rules/transfers.js'
import { digestOf, MAX_VALIDITY_PULSES, type SignedTransaction } from './transaction.js'

/** What every transaction of a Pulse is executed under. */
export interface ExecutionContext {
  readonly chain: Id
  readonly pulse: number
  readonly parameters: Parameters
}

/** Executed: in the Pulse, its fee charged, with whatever came of it. */
export interface Executed {
  readonly kind: 'executed'
  readonly digest: Id
  readonly outcome: Outcome
  readonly fee: bigint
  readonly events: LedgerEvent[]
  readonly writes: ReadonlyMap<Id, LedgerObject | null>
}

/** Inadmissible: no Pulse may hold it, nothing is charged. */
export interface Inadmissible {
  readonly kind: 'inadmissible'
  readonly code: InadmissibleCode
  readonly reason: string
}

export type InadmissibleCode =
  | 'wrong_chain'
  | 'expired'
  | 'valid_too_long'
  | 'replayed'
  | 'unknown_keys'
  | 'wrong_keys'
  | 'missing_signature'
  | 'insufficient_fee'

/**
 * What must hold before a transaction may enter a Pulse. Its signatures are checked elsewhere, since that is slow: this
 * says against which keys (see {@link keysToCheck}).
 */
export function admissible(state: StateView, tx: SignedTransaction, context: ExecutionContext): Inadmissible | undefined {
  const { body } = tx
  if (body.chain !== context.chain) return no('wrong_chain', `the transaction is for chain ${body.chain.slice(0, 8)}, this is ${context.chain.slice(0, 8)}`)
  if (body.validUntil < context.pulse) {
    return no('expired', `the transaction was valid until Pulse ${body.validUntil}, this is Pulse ${context.pulse}`)
  }
  if (body.validUntil > context.pulse + MAX_VALIDITY_PULSES) {
    return no('valid_too_long', `valid until Pulse ${body.validUntil}, more than ${MAX_VALIDITY_PULSES} Pulses ahead of ${context.pulse}`)
  }
  if (state.get(spentNonceId(body.signer, body.nonce)) !== undefined) {
    return no('replayed', 'the transaction was executed before: its nonce is used up')
  }
  const account = accountAt(state, body.signer)
  if (account === undefined) return no('unknown_keys', `${body.signer.slice(0, 8)} is not an account`)
  if (tx.keys !== undefined && accountOf(tx.keys) !== body.signer) {
    return no('wrong_keys', 'the keys sent along are not those of the signer')
  }
  if (account.keys === undefined && tx.keys === undefined) {
    return no('unknown_keys', 'the ledger does not know the signer’s keys yet: send them along')
  }
  if (account.dual && tx.slhDsa === undefined) {
    return no('missing_signature', 'the signer’s account is dual: an SLH-DSA-SHA2-128f signature is needed too')
  }
  if (needsBothSignatures(body.action) && tx.slhDsa === undefined) {
    return no('missing_signature', 'the claim rests on an SLH-DSA-SHA2-128f signature, which is missing')
  }
  const fee = feeOf(body.action, context.parameters)
  if (account.balance < fee) {
    return no('insufficient_fee', `insufficient balance: ${formatUsd(account.balance)} USD, below the fee of ${formatUsd(fee)} USD`)
  }
  return undefined
}

/** Whether what is asked rests on both signatures, whatever the account says: such a claim must outlive a broken lattice. */
export function needsBothSignatures(action: Action): boolean {
  return action.kind === 'issueClaim' && restsOnFamily(action.formula, 'SLH-DSA-SHA2-128f')
}

/** The keys a transaction's signatures must verify against: the recorded ones, else those sent along. */
export function keysToCheck(state: StateView, tx: SignedTransaction): SignedTransaction['keys'] {
  const account = accountAt(state, tx.body.signer)
  return account?.keys ?? tx.keys
}

/** Applies one transaction whose signatures are good. Pure: the state is only read, the writes are returned. */
export function execute(state: StateView, tx: SignedTransaction, context: ExecutionContext): Executed | Inadmissible {
  const refusal = admissible(state, tx, context)
  if (refusal !== undefined) return refusal
  const { signer, nonce, validUntil, action } = tx.body
  const digest = digestOf(tx.body)
  const fee = feeOf(action, context.parameters)

  const charged = new Map<Id, LedgerObject | null>()
  const account = accountAt(state, signer)
  const treasury = accountAt(state, TREASURY)
  if (account === undefined || treasury === undefined) return no('unknown_keys', `${signer.slice(0, 8)} is not an account`)
  charged.set(TREASURY, { ...treasury, balance: treasury.balance + fee })
  charged.set(signer, { ...account, balance: account.balance - fee, keys: account.keys ?? tx.keys })
  charged.set(spentNonceId(signer, nonce), { kind: 'spentNonce', validUntil })

  const result = applyRule(overlay(state, charged), action, {
    signer,
    digest,
    pulse: context.pulse,
    parameters: context.parameters,
  })
  if ('failed' in result) {
    return { kind: 'executed', digest, fee, outcome: { kind: 'failed', reason: result.failed }, events: [], writes: charged }
  }
  for (const [id, object] of result.writes) charged.set(id, object)
  return { kind: 'executed', digest, fee, outcome: { kind: 'success' }, events: result.events, writes: charged }
}

/** `base` with `writes` on top. */
export function overlay(base: StateView, writes: ReadonlyMap<Id, LedgerObject | null>): StateView {
  return {
    get(id) {
      const written = writes.get(id)
      return written === undefined ? base.get(id) : (written ?? undefined)
    },
  }
}

function applyRule(state: StateView, action: Action, context: RuleContext): RuleResult {
  switch (action.kind) {
    case 'transfer':
      return transfer(state, action, context)
    case 'setDual':
      return setDual(state, action, context)
    case 'openStream':
      return openStream(state, action, context)
    case 'topUpStream':
      return topUpStream(state, action, context)
    case 'settleStreams':
      return settleStreams(state, action, context)
    case 'closeStream':
      return closeStream(state, action, context)
    case 'issueClaim':
      return issueClaim(state, action, context)
    case 'depositBond':
      return depositBond(state, action, context)
    case 'withdrawBond':
      return withdrawBond(state, action, context)
  }
}

function no(code: InadmissibleCode, reason: string): Inadmissible {
  return { kind: 'inadmissible', code, reason }
}
