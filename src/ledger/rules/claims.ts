import { formatUsd, fromHex, MAX_AMOUNT, toHex, type Id } from '../../codec/index.js'
import { appendLeaf, frontierRoot, leafHash } from '../../merkle/index.js'
import type { DepositBond, IssueClaim, WithdrawBond } from '../actions.js'
import { atomsOf } from '../formula.js'
import { bondId, KNOWLEDGE_LOG } from '../ids.js'
import { claimId, type Bond, type Claim, type KnowledgeLog, type LedgerObject, type Statement } from '../objects.js'
import type { Rule, RuleResult, StateView } from './rule.js'
import { accountAt } from './transfers.js'

/** A claim holds at most this far ahead, as a stream lasts. */
export const MAX_CLAIM_PULSES = 10_000_000
/** Certain to be found out. */
export const CERTAIN_DETECTION = 1_000

/**
 * That `signer` asked is proven by its signatures, which the node checks; that both families signed, where the formula
 * names both, is part of what is admissible (`needsBothSignatures`).
 */
export const issueClaim: Rule<IssueClaim> = (state, action, { signer, digest, pulse }) => {
  const { subject, schema, formula, adjudicator, detection, lastPulse } = action
  if (subject === '') return invalid('a claim of nothing')
  if (schema === '') return invalid('a claim without a schema')
  if (detection < 1 || detection > CERTAIN_DETECTION) return invalid(`a detection of ${detection}, not 1 to ${CERTAIN_DETECTION} thousandths`)
  if (lastPulse < pulse) return invalid(`a claim until Pulse ${lastPulse}, which is over`)
  if (lastPulse > pulse + MAX_CLAIM_PULSES) return invalid(`a claim for more than ${MAX_CLAIM_PULSES} Pulses`)
  const held: [Id, Bond][] = []
  for (const [id, atom] of atomsOf(formula)) {
    if (atom.kind !== 'bond') continue
    if (atom.owner !== signer) return { failed: 'unauthorized: a claim rests on bonds of its issuer alone' }
    const bond = state.get(id)
    if (bond?.kind !== 'bond' || bond.amount === 0n) return invalid(`no money in the bond ${atom.label}`)
    held.push([id, { ...bond, heldUntil: Math.max(bond.heldUntil, lastPulse) }])
  }
  const recorded = recordClaim(state, { source: digest, issuer: signer, subject, schema, formula, adjudicator, detection, issued: pulse, lastPulse })
  return { writes: new Map<Id, LedgerObject>([...recorded.writes, ...held]), events: [{ kind: 'ClaimSubmitted', claim: recorded.claim }] }
}

/** Puts a statement on record: the claim, and its leaf in the knowledge log. For rules of other families too. */
export function recordClaim(state: StateView, statement: Statement): { readonly claim: Id; readonly writes: readonly (readonly [Id, LedgerObject])[] } {
  const claim = claimId(statement)
  const log = knowledgeLogAt(state)
  const recorded: Claim = { kind: 'claim', ...statement, logIndex: log.size }
  const { size, peaks } = appendLeaf(log, claimLeaf(claim))
  const grown: KnowledgeLog = { kind: 'knowledgeLog', size, peaks: [...peaks] }
  return { claim, writes: [[claim, recorded], [KNOWLEDGE_LOG, grown]] }
}

export const depositBond: Rule<DepositBond> = (state, { label, amount }, { signer }): RuleResult => {
  if (label === '') return invalid('a bond without a label')
  if (amount === 0n) return invalid('a deposit of 0 USD')
  const account = accountAt(state, signer)
  if (account === undefined || account.balance < amount) {
    return { failed: `insufficient balance: ${formatUsd(account?.balance ?? 0n)} USD after the fee, below the deposit ${formatUsd(amount)}` }
  }
  const id = bondId(signer, label)
  const found = state.get(id)
  const bond: Bond = found?.kind === 'bond' ? found : { kind: 'bond', owner: signer, label, amount: 0n, reserved: 0n, heldUntil: 0 }
  const holds = bond.amount + amount
  return {
    writes: new Map<Id, LedgerObject>([
      [signer, { ...account, balance: account.balance - amount }],
      [id, { ...bond, amount: holds }],
    ]),
    events: [{ kind: 'BondDeposited', bond: id, owner: signer, label, added: amount, amount: holds }],
  }
}

/** An emptied bond stays where it is: what it was held for is still on record. */
export const withdrawBond: Rule<WithdrawBond> = (state, { label, amount }, { signer, pulse }): RuleResult => {
  const id = bondId(signer, label)
  const bond = state.get(id)
  if (bond?.kind !== 'bond') return invalid(`no bond ${label}`)
  if (amount === 0n) return invalid('a withdrawal of 0 USD')
  if (pulse <= bond.heldUntil) return invalid(`claims rest on the bond ${label} until Pulse ${bond.heldUntil}`)
  const free = bond.amount - bond.reserved
  if (amount > free) return invalid(`the bond ${label} has ${formatUsd(free)} USD that are not reserved, below ${formatUsd(amount)}`)
  const account = accountAt(state, signer)
  if (account === undefined || account.balance + amount > MAX_AMOUNT) return invalid('the owner would hold too much')
  const left = bond.amount - amount
  return {
    writes: new Map<Id, LedgerObject>([
      [signer, { ...account, balance: account.balance + amount }],
      [id, { ...bond, amount: left }],
    ]),
    events: [{ kind: 'BondWithdrawn', bond: id, owner: signer, label, taken: amount, amount: left }],
  }
}

/** The knowledge log of a state; empty before the first claim. */
export function knowledgeLogAt(state: StateView): KnowledgeLog {
  const log = state.get(KNOWLEDGE_LOG)
  return log?.kind === 'knowledgeLog' ? log : { kind: 'knowledgeLog', size: 0, peaks: [] }
}

/** What a header says of the log. */
export function knowledgeOf(state: StateView): { readonly knowledgeRoot: Id; readonly knowledgeSize: number } {
  const log = knowledgeLogAt(state)
  return { knowledgeRoot: toHex(frontierRoot(log)), knowledgeSize: log.size }
}

/** The log's leaf hash of a claim: RFC 9162's, over the 32 bytes of its id. */
export function claimLeaf(claim: Id): Uint8Array {
  return leafHash(fromHex(claim, 'claim', 32))
}

/** A claim that entered the log, as the Pulse's event says it: no transaction knows its own place. */
export interface IssuedClaim {
  readonly claim: Id
  readonly logIndex: number
}

/** The claims among what a Pulse wrote, in the order of the log: claims are written once, when they are issued. */
export function issuedClaims(writes: ReadonlyMap<Id, LedgerObject | null>): IssuedClaim[] {
  const issued: IssuedClaim[] = []
  for (const [claim, object] of writes) if (object?.kind === 'claim') issued.push({ claim, logIndex: object.logIndex })
  return issued.sort((a, b) => a.logIndex - b.logIndex)
}

function invalid(what: string): { failed: string } {
  return { failed: `invalid transaction: ${what}` }
}
