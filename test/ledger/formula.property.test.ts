import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InputError, unpack } from '../../src/codec/index.js'
import { formula, MAX_FORMULA_DEPTH, MAX_FORMULA_NODES, type Formula } from '../../src/ledger/formula.js'
import { atomId, atomsOf, DUAL_SIGNATURE } from '../../src/ledger/index.js'

const owner = 'a'.repeat(64)
const bond = (label: string): Formula => ({ kind: 'bond', owner, label })
const leaf: fc.Arbitrary<Formula> = fc.oneof(
  fc.constantFrom<Formula>({ kind: 'signature', family: 'ML-DSA-44' }, { kind: 'signature', family: 'SLH-DSA-SHA2-128f' }),
  fc.constantFrom('a', 'b', 'c').map(bond),
)
const formulas: fc.Arbitrary<Formula> = fc.letrec<{ formula: Formula }>((tie) => ({
  formula: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc
      .tuple(fc.constantFrom('allOf' as const, 'anyOf' as const, 'kOf' as const), fc.array(tie('formula'), { minLength: 1, maxLength: 3 }), fc.nat(2))
      .map(([kind, of, k]): Formula => (kind === 'kOf' ? { kind, k: 1 + (k % of.length), of } : { kind, of })),
  ),
})).formula

describe('a formula as bytes', () => {
  it('comes back as it was', () => {
    let met = 0
    fc.assert(
      fc.property(formulas, (value) => {
        let bytes: Uint8Array
        try {
          bytes = formula.encode(value)
        } catch (error) {
          expect(String(error)).toMatch(/at most/)
          return
        }
        met++
        const back = unpack(formula, bytes, 'formula')
        expect(back).toEqual(value)
        expect(formula.encode(back)).toEqual(bytes)
      }),
    )
    expect(met).toBeGreaterThan(50)
  })

  it('is refused by our own error where the bytes are not one', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          const value = unpack(formula, bytes, 'formula')
          expect(formula.encode(value)).toEqual(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(InputError)
        }
      }),
      { numRuns: 500 },
    )
  })

  it.each([
    ['a connective of nothing', [0, 1, 4, 0], /a connective of no parts/],
    ['a threshold of none', [0, 2, 6, 0, 1, 1], /0 of 1 parts/],
    ['a threshold that cannot be reached', [0, 2, 6, 2, 1, 1], /2 of 1 parts/],
    ['fewer parts than it says', [0, 2, 4, 2, 1], /fewer parts than it says/],
    ['two trees', [0, 2, 1, 2], /one tree/],
    ['no tree', [0, 0], /one tree/],
  ])('refuses %s', (_, bytes, reason) => {
    expect(() => unpack(formula, new Uint8Array(bytes), 'formula')).toThrow(reason)
  })

  it('nests and grows to its limits, and not beyond', () => {
    const nested = (depth: number): Formula => (depth === 1 ? bond('a') : { kind: 'allOf', of: [nested(depth - 1)] })
    const wide = (parts: number): Formula => ({ kind: 'anyOf', of: Array.from({ length: parts - 1 }, () => bond('a')) })
    for (const value of [nested(MAX_FORMULA_DEPTH), wide(MAX_FORMULA_NODES)]) expect(unpack(formula, formula.encode(value), 'formula')).toEqual(value)
    expect(() => formula.encode(nested(MAX_FORMULA_DEPTH + 1))).toThrow(`at most ${MAX_FORMULA_DEPTH} deep`)
    expect(() => formula.encode(wide(MAX_FORMULA_NODES + 1))).toThrow(`at most ${MAX_FORMULA_NODES}`)
    // Not something that our own encoder would write: one connective inside another, once too often.
    const deep = new Uint8Array([0, MAX_FORMULA_DEPTH + 1, ...Array.from({ length: MAX_FORMULA_DEPTH }, () => [4, 1]).flat(), 1])
    expect(() => unpack(formula, deep, 'formula')).toThrow(`at most ${MAX_FORMULA_DEPTH} deep`)
  })

  it('names each atom once', () => {
    const both = atomsOf({ kind: 'anyOf', of: [bond('a'), { kind: 'allOf', of: [bond('b'), bond('a')] }] })
    expect([...both.values()]).toEqual([bond('a'), bond('b')])
    expect(new Set([...both.keys(), ...atomsOf(DUAL_SIGNATURE).keys()]).size).toBe(4)
    expect(atomId({ kind: 'bond', owner, label: 'a' })).not.toBe(atomId({ kind: 'bond', owner: 'b'.repeat(64), label: 'a' }))
  })
})
