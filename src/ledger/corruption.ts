import type { Id } from '../codec/index.js'
import { atomId, type Formula } from './formula.js'

/** What it costs to make something false pass: micro-USD, or more than anyone has. */
export type Cost = bigint | 'infinite'

export function addCosts(a: Cost, b: Cost): Cost {
  return a === 'infinite' || b === 'infinite' ? 'infinite' : a + b
}

/** Negative where `a` is the cheaper one, 0 where they cost the same: an order for `sort`. */
export function compareCosts(a: Cost, b: Cost): number {
  if (a === b) return 0
  if (a === 'infinite') return 1
  if (b === 'infinite') return -1
  return a < b ? -1 : 1
}

export function cheapest(a: Cost, b: Cost): Cost {
  return compareCosts(a, b) <= 0 ? a : b
}

/** Between these lies what it costs to corrupt a formula; they are one and the same where `exact`. */
export interface CorruptionCost {
  readonly low: Cost
  readonly high: Cost
  readonly exact: boolean
}

/**
 * Atoms that stand in several places of a formula and are tried one way and the other. Each doubles the work: 4,096 walks
 * over at most 64 parts take some milliseconds.
 */
export const MAX_SHARED_ATOMS = 12

/**
 * The least that makes a formula fall: all-of costs the sum of its parts, any-of the least, k-of-n the k cheapest. An atom
 * that stands in several places is paid once; finding the cheapest set is hard then (hitting set), so it is exact as long
 * as at most {@link MAX_SHARED_ATOMS} such atoms have a price, and has two bounds beyond that.
 * @param priceOf what each atom costs, by its id; asked once for each.
 */
export function costOfCorruption(formula: Formula, priceOf: (atom: Id) => Cost): CorruptionCost {
  const tree = withIds(formula)
  const places = placesOf(tree)
  const prices = new Map([...places.keys()].map((id) => [id, priceOf(id)] as const))
  // What is free or priceless is that in every place; only a price can be paid once or twice.
  const shared = [...places]
    .filter(([id, count]) => count > 1 && isPrice(prices.get(id)))
    .map(([id]) => id)
    .sort((a, b) => compareCosts(prices.get(b) ?? 0n, prices.get(a) ?? 0n))
  const tried = shared.slice(0, MAX_SHARED_ATOMS)
  const left = shared.slice(MAX_SHARED_ATOMS)
  const high = cheapestBy(tree, prices, tried)
  if (left.length === 0) return { low: high, high, exact: true }
  // Divided among its places, an atom never costs more than it does.
  const divided = new Map(prices)
  for (const id of left) {
    const price = prices.get(id)
    if (isPrice(price)) divided.set(id, price / BigInt(places.get(id) ?? 1))
  }
  const low = cheapestBy(tree, divided, tried)
  return { low, high, exact: compareCosts(low, high) === 0 }
}

/** A formula with its atoms by id, and how many of its parts must fall: an id is a hash, computed once for all ways that are tried. */
type FormulaOfIds = Id | { readonly needed: number; readonly of: readonly FormulaOfIds[] }

function isPrice(cost: Cost | undefined): cost is bigint {
  return typeof cost === 'bigint' && cost > 0n
}

/** In how many places each atom stands. */
function placesOf(part: FormulaOfIds, places = new Map<Id, number>()): Map<Id, number> {
  if (typeof part === 'string') places.set(part, (places.get(part) ?? 0) + 1)
  else for (const inner of part.of) placesOf(inner, places)
  return places
}

/** The cheapest way that buys any of `tried`, once, for all of their places; the other atoms at their price in every place. */
function cheapestBy(tree: FormulaOfIds, prices: ReadonlyMap<Id, Cost>, tried: readonly Id[]): Cost {
  let best: Cost = 'infinite'
  for (let bought = 0; bought < 2 ** tried.length; bought++) {
    const now = new Map(prices)
    let spent: Cost = 0n
    for (const [at, id] of tried.entries()) {
      const buys = (bought & (1 << at)) !== 0
      if (buys) spent = addCosts(spent, prices.get(id) ?? 'infinite')
      now.set(id, buys ? 0n : 'infinite')
    }
    if (compareCosts(spent, best) < 0) best = cheapest(best, addCosts(spent, treeCost(tree, now)))
  }
  return best
}

function withIds(part: Formula): FormulaOfIds {
  if (part.kind === 'signature' || part.kind === 'bond') return atomId(part)
  const needed = part.kind === 'allOf' ? part.of.length : part.kind === 'anyOf' ? 1 : part.k
  return { needed, of: part.of.map(withIds) }
}

function treeCost(part: FormulaOfIds, prices: ReadonlyMap<Id, Cost>): Cost {
  if (typeof part === 'string') return prices.get(part) ?? 'infinite'
  const costs = part.of.map((inner) => treeCost(inner, prices)).sort(compareCosts)
  return costs.slice(0, part.needed).reduce<Cost>(addCosts, 0n)
}
