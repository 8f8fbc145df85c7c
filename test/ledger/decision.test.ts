import { describe, expect, it } from 'vitest'
import { InputError, type Id } from '../../src/codec/index.js'
import { atomId, atomsOf, bondId, decide, DUAL_SIGNATURE, type Bond, type Formula, type Policy, type Statement } from '../../src/ledger/index.js'

const issuer = 'a'.repeat(64)
const usd = (whole: number): bigint => BigInt(whole) * 1_000_000n
const bond = (label: string): Formula => ({ kind: 'bond', owner: issuer, label })

function statement(more: Partial<Statement> = {}): Statement {
  return {
    source: 'd'.repeat(64),
    issuer,
    subject: 'Invoice 88 was paid in full',
    schema: 'note/v1',
    formula: DUAL_SIGNATURE,
    detection: 1_000,
    issued: 7,
    lastPulse: 100,
    ...more,
  }
}

function bonds(...held: { label: string; amount: bigint; reserved?: bigint }[]): (id: Id) => Bond | undefined {
  const byId = new Map(
    held.map(({ label, amount, reserved = 0n }): [Id, Bond] => [
      bondId(issuer, label),
      { kind: 'bond', owner: issuer, label, amount, reserved, heldUntil: 100 },
    ]),
  )
  return (id) => byId.get(id)
}

function decided(more: Partial<Statement>, policy: Policy, bondAt = bonds(), pulse = 50) {
  const { accept, reasons, ...rest } = decide(statement(more), bondAt, pulse, policy)
  return { accept, reasons: [...reasons], ...rest }
}

const families = [...atomsOf(DUAL_SIGNATURE).keys()]

describe('a decision', () => {
  it('relies on two trusted signature families at any value, in the words of the reference', () => {
    expect(decided({}, { value: usd(1_000) })).toMatchObject({
      accept: true,
      reasons: ['cost of corruption ∞ covers κ·V = 2,000'],
      corruption: { exact: true, low: 'infinite', high: 'infinite' },
      adjudicatorCap: 'infinite',
      detectionAdjusted: 'infinite',
      effective: 'infinite',
      required: usd(2_000),
      reservable: 'infinite',
    })
  })

  it('relies on nothing once both are distrusted, in the words of the reference', () => {
    expect(decided({}, { value: usd(1_000), kappa: 3_000_000n, distrusted: new Set(families) })).toMatchObject({
      accept: false,
      reasons: [
        'cost of corruption 0 (after detection discount 1000/1000) is below κ·V = 3,000',
        'only 0 of backing is unreserved; κ·V = 3,000 is needed',
      ],
      corruption: { exact: true, low: 0n, high: 0n },
      required: usd(3_000),
      reservable: 0n,
    })
  })

  it('still costs what one family does when the other alone is distrusted', () => {
    expect(decided({}, { value: usd(1), distrusted: new Set(families.slice(0, 1)) }).accept).toBe(true)
  })

  it('prices a distrusted family at its known attack cost, which backs nothing', () => {
    const attackCosts = new Map(families.map((id) => [id, usd(500)]))
    expect(decided({}, { value: usd(500), distrusted: new Set(families), attackCosts })).toMatchObject({
      accept: false,
      effective: usd(1_000),
      reasons: ['only 0 of backing is unreserved; κ·V = 1,000 is needed'],
    })
  })

  it('takes a bond for what is in it: to the micro-USD', () => {
    const formula = bond('audit')
    const at = (amount: bigint) => decided({ formula }, { value: usd(5) }, bonds({ label: 'audit', amount }))
    expect(at(usd(10))).toMatchObject({ accept: true, reasons: ['cost of corruption 10 covers κ·V = 10'] })
    expect(at(usd(10) - 1n)).toMatchObject({
      accept: false,
      reasons: [
        'cost of corruption 9.999999 (after detection discount 1000/1000) is below κ·V = 10',
        'only 9.999999 of backing is unreserved; κ·V = 10 is needed',
      ],
    })
    expect(decided({ formula }, { value: usd(5) }).effective).toBe(0n)
  })

  it('counts what is reserved as a cost, and not as backing', () => {
    const held = bonds({ label: 'audit', amount: usd(10), reserved: usd(4) })
    expect(decided({ formula: bond('audit') }, { value: usd(5) }, held)).toMatchObject({
      accept: false,
      effective: usd(10),
      reservable: usd(6),
      reasons: ['only 6 of backing is unreserved; κ·V = 10 is needed'],
    })
  })

  it('discounts by detection, rounding down, and asks for κ·V rounded up', () => {
    const held = bonds({ label: 'audit', amount: 1_999n })
    const at = decided({ formula: bond('audit'), detection: 500 }, { value: 333n, kappa: 3_000_001n }, held)
    expect(at.detectionAdjusted).toBe(999n)
    expect(at.required).toBe(1_000n)
    expect(at.accept).toBe(false)
  })

  it('is no better than its adjudicator', () => {
    const adjudicator = { kind: 'bond', owner: 'b'.repeat(64), label: 'court' } as const
    const court: Bond = { kind: 'bond', owner: adjudicator.owner, label: 'court', amount: usd(3), reserved: 0n, heldUntil: 0 }
    const bondAt = (id: Id): Bond | undefined => (id === atomId(adjudicator) ? court : undefined)
    expect(decided({ adjudicator }, { value: usd(2) }, bondAt)).toMatchObject({
      accept: false,
      adjudicatorCap: usd(3),
      effective: usd(3),
      reasons: ['cost of corruption of the adjudicator 3 is below κ·V = 4'],
    })
    expect(decided({ adjudicator }, { value: usd(1) }, bondAt)).toMatchObject({ accept: true, reasons: ['cost of corruption 3 covers κ·V = 2'] })
  })

  it('holds to its last Pulse', () => {
    expect(decided({}, { value: usd(1) }, bonds(), 100).accept).toBe(true)
    expect(decided({}, { value: usd(1) }, bonds(), 101)).toMatchObject({ accept: false, reasons: ['the claim held until Pulse 100; it is Pulse 101'] })
  })

  it.each([
    ['no value', { value: 0n }],
    ['no safety factor', { value: 1n, kappa: 0n }],
    ['a safety factor out of range', { value: 1n, kappa: 1_000_000_001n }],
    ['more than money can say', { value: 2n ** 53n - 1n }],
  ])('refuses %s', (_, policy) => {
    expect(() => decide(statement(), bonds(), 50, policy)).toThrow(InputError)
  })
})
