import type { Id } from '../../codec/index.js'
import type { LedgerObject } from '../objects.js'
import type { Parameters } from '../parameters.js'
import type { LedgerEvent } from '../receipt.js'

/** The state as a rule reads it. */
export interface StateView {
  get(id: Id): LedgerObject | undefined
}

/** Who asks, and when. All a rule knows of the world: no clock, no randomness, no I/O. */
export interface RuleContext {
  readonly signer: Id
  /** The digest of the transaction: what new objects derive their ids from. */
  readonly digest: Id
  readonly pulse: number
  readonly parameters: Parameters
}

/** What an action does. `null` deletes. */
export interface Effects {
  readonly writes: ReadonlyMap<Id, LedgerObject | null>
  readonly events: LedgerEvent[]
}

/** Effects, or the reason why the action fails: its fee is charged and nothing else happens. */
export type RuleResult = Effects | { readonly failed: string }

/**
 * One family's rule for one action. The state it sees has the fee already taken, so an effect on the signer's account
 * starts from there.
 */
export type Rule<A> = (state: StateView, action: A, context: RuleContext) => RuleResult
