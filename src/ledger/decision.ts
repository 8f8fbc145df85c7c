import { formatUsd, InputError, MAX_AMOUNT, quote, type Id, type MicroUsd } from '../codec/index.js'
import { addCosts, cheapest, compareCosts, costOfCorruption, type CorruptionCost, type Cost } from './corruption.js'
import { atomId, atomsOf, type Atom } from './formula.js'
import type { Bond, Statement } from './objects.js'
import { CERTAIN_DETECTION } from './rules/claims.js'

/** κ where nobody says otherwise: 2, in millionths. */
export const DEFAULT_KAPPA = 2_000_000n
/** κ is at most 1,000. */
export const MAX_KAPPA = 1_000_000_000n

/** What somebody believes before relying on a claim, and what is at stake. */
export interface Policy {
  /** V: what is lost if the claim is false, in micro-USD. */
  readonly value: MicroUsd
  /** κ, the safety factor, in millionths. Default {@link DEFAULT_KAPPA}. */
  readonly kappa?: bigint
  /** Atoms that are trusted no longer, by their ids. */
  readonly distrusted?: ReadonlySet<Id>
  /** What it is known to cost to break an atom besides its bond, in micro-USD, by its id. Default nothing. */
  readonly attackCosts?: ReadonlyMap<Id, MicroUsd>
}

/** An atom under a policy. */
export interface PricedAtom {
  readonly id: Id
  readonly atom: Atom
  readonly trusted: boolean
  readonly cost: Cost
  /** What of it could still pay for a loss. */
  readonly backing: Cost
}

/** Whether to rely on a claim, with all that it follows from. Money in micro-USD. */
export interface Decision {
  readonly accept: boolean
  /** CoC: what it costs to corrupt the claim's formula. */
  readonly corruption: CorruptionCost
  /** δ·CoC. */
  readonly detectionAdjusted: Cost
  /** CoC of the adjudicator; infinite where the claim names none. */
  readonly adjudicatorCap: Cost
  /** min(δ·CoC, CoC(adjudicator)). */
  readonly effective: Cost
  /** κ·V. */
  readonly required: MicroUsd
  /** What of the claim's backing is not reserved for others. */
  readonly reservable: Cost
  /** In sentences: why not, or why. */
  readonly reasons: readonly string[]
  readonly atoms: readonly PricedAtom[]
}

/**
 * Whether a claim can be relied on: min(δ·CoC, CoC(adjudicator)) ≥ κ·V, and the backing that is not reserved covers κ·V,
 * and the claim still holds. Where the cost of corruption is known between two bounds only, the low one decides.
 *
 * A trusted signature family cannot be corrupted at any price; a distrusted one costs what it is known to cost to break. A
 * bond costs what is in it, and what it is known to cost beyond that, trusted or not: that it is lost is certain either way.
 * @param bondAt the bonds that the claim's formula and adjudicator name, by their ids, as they are now.
 * @throws InputError for a κ or V that is out of range.
 */
export function decide(statement: Statement, bondAt: (id: Id) => Bond | undefined, pulse: number, policy: Policy): Decision {
  const { value, kappa = DEFAULT_KAPPA } = policy
  if (kappa <= 0n || kappa > MAX_KAPPA) throw new InputError('kappa', `expected more than 0 and at most ${MAX_KAPPA / MILLION}`)
  const required = ceilDivide(value * kappa, MILLION)
  if (value <= 0n || required > MAX_AMOUNT) {
    throw new InputError('value', `expected more than 0 USD, and at most ${formatUsd(MAX_AMOUNT)} USD times κ, not ${quote(formatUsd(value))}`)
  }
  const { formula, adjudicator, detection, lastPulse } = statement
  const atoms = [...atomsOf(adjudicator === undefined ? formula : { kind: 'allOf', of: [formula, adjudicator] })].map(([id, atom]) =>
    priceAtom(id, atom, bondAt(id), policy),
  )
  const byId = new Map(atoms.map((priced) => [priced.id, priced]))
  const corruption = costOfCorruption(formula, (id) => byId.get(id)?.cost ?? 0n)
  const reservable = costOfCorruption(formula, (id) => byId.get(id)?.backing ?? 0n).low
  const adjudicatorCap = adjudicator === undefined ? 'infinite' : (byId.get(atomId(adjudicator))?.cost ?? 0n)
  const detectionAdjusted = corruption.low === 'infinite' ? corruption.low : (corruption.low * BigInt(detection)) / BigInt(CERTAIN_DETECTION)
  const effective = cheapest(detectionAdjusted, adjudicatorCap)

  const against: string[] = []
  if (pulse > lastPulse) against.push(`the claim held until Pulse ${lastPulse}; it is Pulse ${pulse}`)
  if (compareCosts(detectionAdjusted, required) < 0) {
    const discount = `after detection discount ${detection}/${CERTAIN_DETECTION}`
    against.push(`cost of corruption ${costText(detectionAdjusted)} (${discount}) is below κ·V = ${costText(required)}`)
  }
  if (compareCosts(adjudicatorCap, required) < 0) {
    against.push(`cost of corruption of the adjudicator ${costText(adjudicatorCap)} is below κ·V = ${costText(required)}`)
  }
  if (compareCosts(reservable, required) < 0) {
    against.push(`only ${costText(reservable)} of backing is unreserved; κ·V = ${costText(required)} is needed`)
  }
  const accept = against.length === 0
  const reasons = accept ? [`cost of corruption ${costText(effective)} covers κ·V = ${costText(required)}`] : against
  return { accept, corruption, detectionAdjusted, adjudicatorCap, effective, required, reservable, reasons, atoms }
}

const MILLION = 1_000_000n

function priceAtom(id: Id, atom: Atom, bond: Bond | undefined, { distrusted, attackCosts }: Policy): PricedAtom {
  const trusted = distrusted?.has(id) !== true
  const attack = attackCosts?.get(id) ?? 0n
  if (atom.kind === 'signature') return { id, atom, trusted, cost: trusted ? 'infinite' : attack, backing: trusted ? 'infinite' : 0n }
  const held = bond?.amount ?? 0n
  return { id, atom, trusted, cost: addCosts(held, attack), backing: held - (bond?.reserved ?? 0n) }
}

/** As the reference writes it: whole dollars in groups of three, decimals where there are any. */
function costText(cost: Cost): string {
  if (cost === 'infinite') return '∞'
  const [whole = '', decimals] = formatUsd(cost).split('.')
  const grouped = whole.replace(/\B(?=([0-9]{3})+$)/g, ',')
  return decimals === undefined ? grouped : `${grouped}.${decimals}`
}

/** Rounded up: a safety factor is not met by less. */
function ceilDivide(amount: bigint, by: bigint): bigint {
  return (amount + by - 1n) / by
}
