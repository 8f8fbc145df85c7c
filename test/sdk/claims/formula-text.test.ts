import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InputError } from '../../../src/codec/index.js'
import { DUAL_SIGNATURE, MAX_FORMULA_DEPTH, MAX_FORMULA_NODES, type Formula } from '../../../src/ledger/index.js'
import { formulaText, parseAdjudicator, parseFormula } from '../../../src/sdk/index.js'

const issuer = 'a'.repeat(64)
const bob = 'b'.repeat(64)
const ownerOf = (owner: string | undefined): string => (owner === undefined ? issuer : owner === 'bob' ? bob : owner)
const parse = (text: string): Promise<Formula> => parseFormula(text, '--formula', ownerOf)
const bond = (label: string, owner = issuer): Formula => ({ kind: 'bond', owner, label })

describe('a formula as people write it', () => {
  it.each<[string, Formula]>([
    ['dual', DUAL_SIGNATURE],
    ['ml-dsa-44', { kind: 'signature', family: 'ML-DSA-44' }],
    ['bond:audit', bond('audit')],
    ['bond:bob:task-worker', bond('task-worker', bob)],
    ['all(dual, bond:audit)', { kind: 'allOf', of: [DUAL_SIGNATURE, bond('audit')] }],
    [' any( bond:a ,2of(bond:b,bond:c,bond:d)) ', { kind: 'anyOf', of: [bond('a'), { kind: 'kOf', k: 2, of: [bond('b'), bond('c'), bond('d')] }] }],
  ])('%s', async (text, formula) => {
    expect(await parse(text)).toEqual(formula)
  })

  it.each([
    ['', 'at the end'],
    ['all', 'expected "(" at the end'],
    ['all()', 'before ")"'],
    ['all(dual', 'expected ")" at the end'],
    ['all(dual,)', 'before ")"'],
    ['dual dual', 'nothing was expected after the formula, not "dual"'],
    ['3of(dual, dual)', '3of has 2 parts'],
    ['0of(dual)', '"0of" is no atom'],
    ['bond:', '"bond:" is no atom'],
    ['bond:bob:', '1 to 64 bytes'],
    [`bond:${'x'.repeat(65)}`, '1 to 64 bytes'],
    ['rsa', '"rsa" is no atom'],
    ['constructor', '"constructor" is no atom'],
    [`${'all('.repeat(MAX_FORMULA_DEPTH)}dual${')'.repeat(MAX_FORMULA_DEPTH)}`, 'at most 8 deep'],
    [`any(${Array.from({ length: MAX_FORMULA_NODES }, () => 'bond:a').join(',')})`, 'at most 64 parts'],
  ])('%j is refused, saying where', async (text, why) => {
    await expect(parse(text)).rejects.toThrow(InputError)
    await expect(parse(text)).rejects.toThrow(why)
  })

  it('is read back as it was written out', async () => {
    const formulas: fc.Arbitrary<Formula> = fc.letrec<{ formula: Formula }>((tie) => ({
      formula: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom<Formula>(bond('a'), bond('b:c', bob), { kind: 'signature', family: 'SLH-DSA-SHA2-128f' }),
        fc
          .tuple(fc.constantFrom('allOf' as const, 'anyOf' as const, 'kOf' as const), fc.array(tie('formula'), { minLength: 1, maxLength: 3 }))
          .map(([kind, of]): Formula => (kind === 'kOf' ? { kind, k: of.length, of } : { kind, of })),
      ),
    })).formula
    await fc.assert(
      fc.asyncProperty(formulas, async (formula) => {
        expect(await parse(formulaText(formula, issuer, (id) => (id === bob ? 'bob' : id)))).toEqual(formula)
      }),
    )
  })

  it('names one adjudicator', async () => {
    expect(await parseAdjudicator('bond:bob:court', '--adjudicator', ownerOf)).toEqual(bond('court', bob))
    await expect(parseAdjudicator('dual', '--adjudicator', ownerOf)).rejects.toThrow('expected one atom')
  })
})
