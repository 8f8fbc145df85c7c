import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Id } from '../../src/codec/index.js'
import { MAX_SHARED_ATOMS } from '../../src/ledger/corruption.js'
import { atomId, atomsOf, compareCosts, costOfCorruption, DUAL_SIGNATURE, type Cost, type Formula } from '../../src/ledger/index.js'

const owner = 'a'.repeat(64)
const bond = (label: string): Formula => ({ kind: 'bond', owner, label })
const bondIds = (label: string): Id => atomId({ kind: 'bond', owner, label })

function formulasOf(labels: string[]): fc.Arbitrary<Formula> {
  return fc.letrec<{ formula: Formula }>((tie) => ({
    formula: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom(...labels).map(bond),
      fc
        .tuple(fc.constantFrom('allOf' as const, 'anyOf' as const, 'kOf' as const), fc.array(tie('formula'), { minLength: 1, maxLength: 3 }), fc.nat(2))
        .map(([kind, of, k]): Formula => (kind === 'kOf' ? { kind, k: 1 + (k % of.length), of } : { kind, of })),
    ),
  })).formula
}

function falls(part: Formula, corrupted: ReadonlySet<Id>): boolean {
  if (part.kind === 'signature' || part.kind === 'bond') return corrupted.has(atomId(part))
  const fallen = part.of.filter((inner) => falls(inner, corrupted)).length
  return fallen >= (part.kind === 'allOf' ? part.of.length : part.kind === 'anyOf' ? 1 : part.k)
}

/** Tries every set of atoms: slow, and plainly what the cost means. */
function byTryingAll(formula: Formula, priceOf: (id: Id) => Cost): Cost {
  const ids = [...atomsOf(formula).keys()]
  let best: Cost = 'infinite'
  for (let set = 0; set < 2 ** ids.length; set++) {
    const corrupted = ids.filter((_, at) => (set & (1 << at)) !== 0)
    if (!falls(formula, new Set(corrupted))) continue
    const prices = corrupted.map(priceOf)
    if (prices.includes('infinite')) continue
    const cost = prices.reduce<bigint>((sum, price) => sum + (price === 'infinite' ? 0n : price), 0n)
    if (compareCosts(cost, best) < 0) best = cost
  }
  return best
}

/** The cheapest choice that has one of every two neighbours in a ring, by trying every choice. */
function ringCover(costs: readonly bigint[]): bigint {
  let best = costs.reduce((sum, cost) => sum + cost, 0n)
  for (let set = 0; set < 2 ** costs.length; set++) {
    if (costs.some((_, at) => ((set >> at) & 1) === 0 && ((set >> ((at + 1) % costs.length)) & 1) === 0)) continue
    const cost = costs.reduce((sum, each, at) => sum + (((set >> at) & 1) === 1 ? each : 0n), 0n)
    if (cost < best) best = cost
  }
  return best
}

const prices = (labels: string[]): fc.Arbitrary<Map<Id, Cost>> =>
  fc
    .tuple(...labels.map(() => fc.oneof(fc.bigInt({ min: 0n, max: 20n }), fc.constant('infinite' as const))))
    .map((costs) => new Map(labels.map((label, at) => [bondIds(label), costs[at] ?? 0n])))

describe('the cost of corruption', () => {
  it('is what the cheapest set of atoms costs, whichever are shared', () => {
    const labels = ['a', 'b', 'c', 'd', 'e', 'f']
    fc.assert(
      fc.property(formulasOf(labels), prices(labels), (formula, priced) => {
        const priceOf = (id: Id): Cost => priced.get(id) ?? 0n
        const cost = byTryingAll(formula, priceOf)
        expect(costOfCorruption(formula, priceOf)).toEqual({ low: cost, high: cost, exact: true })
      }),
      { numRuns: 300 },
    )
  })

  it('lies between the bounds where more atoms are shared than are tried', () => {
    const labels = Array.from({ length: MAX_SHARED_ATOMS + 3 }, (_, at) => `bond ${at}`)
    const pairs = labels.map((label, at): Formula => ({ kind: 'anyOf', of: [bond(label), bond(labels[(at + 1) % labels.length] ?? '')] }))
    const ring: Formula = { kind: 'allOf', of: pairs }
    let inexact = 0
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 1n, max: 30n }), { minLength: labels.length, maxLength: labels.length }), (costs) => {
        const priced = new Map(labels.map((label, at) => [bondIds(label), costs[at] ?? 1n]))
        const priceOf = (id: Id): Cost => priced.get(id) ?? 0n
        const cost = ringCover(costs)
        const { low, high, exact } = costOfCorruption(ring, priceOf)
        expect(compareCosts(low, cost)).toBeLessThanOrEqual(0)
        expect(compareCosts(cost, high)).toBeLessThanOrEqual(0)
        expect(exact).toBe(low === high)
        if (!exact) inexact++
      }),
      { numRuns: 5 },
    )
    expect(inexact).toBeGreaterThan(0)
  })

  it('adds all-of, takes the least of any-of, the k least of k-of-n, and pays a shared atom once', () => {
    const priced = new Map<Id, Cost>([[bondIds('a'), 3n], [bondIds('b'), 5n], [bondIds('c'), 7n]])
    const cost = (formula: Formula): Cost => costOfCorruption(formula, (id) => priced.get(id) ?? 'infinite').low
    const [a, b, c] = [bond('a'), bond('b'), bond('c')]
    expect(cost({ kind: 'allOf', of: [a, b, c] })).toBe(15n)
    expect(cost({ kind: 'anyOf', of: [b, c] })).toBe(5n)
    expect(cost({ kind: 'kOf', k: 2, of: [c, a, b] })).toBe(8n)
    expect(cost({ kind: 'allOf', of: [a, { kind: 'anyOf', of: [a, b] }] })).toBe(3n)
    // Each alone the cheaper branch would be a, then b; together c serves for both.
    expect(cost({ kind: 'allOf', of: [{ kind: 'anyOf', of: [b, c] }, { kind: 'allOf', of: [c, a] }] })).toBe(10n)
    expect(cost(DUAL_SIGNATURE)).toBe('infinite')
    expect(cost({ kind: 'anyOf', of: [DUAL_SIGNATURE, c] })).toBe(7n)
  })
})
