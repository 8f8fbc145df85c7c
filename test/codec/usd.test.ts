import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatUsd, InputError, MAX_AMOUNT, parseMicroUsd, parseUsd } from '../../src/codec/index.js'

const amounts = fc.bigInt({ min: 0n, max: MAX_AMOUNT })

describe('decimal USD', () => {
  it.each([
    ['0', 0n],
    ['0.0', 0n],
    ['0.000000', 0n],
    ['0.000001', 1n],
    ['0.001', 1_000n],
    ['0.25', 250_000n],
    ['0.250000', 250_000n],
    ['1', 1_000_000n],
    ['1.5', 1_500_000n],
    ['31.2422', 31_242_200n],
    ['10.000001', 10_000_001n],
    ['9007199254.740991', MAX_AMOUNT],
  ])('reads %s exactly', (text, amount) => {
    expect(parseUsd(text, 'price')).toBe(amount)
  })

  it.each([
    ['0.0000001', 'price: "0.0000001" has 7 decimals; USD has at most 6'],
    ['1.0000000', 'price: "1.0000000" has 7 decimals; USD has at most 6'],
    ['9007199254.740992', 'price: "9007199254.740992" is more than the largest amount, 9007199254.740991'],
    ['9007199255', 'price: "9007199255" is more than the largest amount, 9007199254.740991'],
    ['9'.repeat(16), `price: "${'9'.repeat(16)}" is more than the largest amount, 9007199254.740991`],
    ['1'.repeat(30), `price: "${'1'.repeat(30)}" is more than the largest amount, 9007199254.740991`],
    [`0.${'1'.repeat(30)}`, `price: "0.${'1'.repeat(30)}" has 30 decimals; USD has at most 6`],
    ['9'.repeat(100_000), /^price: "9{40}…" is more than the largest amount/],
    [1, 'price: expected USD as decimal text such as "0.25", not a number'],
    [0.25, 'price: expected USD as decimal text such as "0.25", not a number'],
    [NaN, 'price: expected USD as decimal text such as "0.25", not a number'],
    [1n, 'price: expected USD as decimal text such as "0.25", not a bigint'],
    [null, 'price: expected USD as decimal text such as "0.25", not null'],
    [undefined, 'price: expected USD as decimal text such as "0.25", not nothing'],
    [['1'], 'price: expected USD as decimal text such as "0.25", not an array'],
    [{ toString: () => '1' }, 'price: expected USD as decimal text such as "0.25", not an object'],
  ])('refuses %o with the reason', (text, message) => {
    expect(() => parseUsd(text, 'price')).toThrow(message)
    expect(() => parseUsd(text, 'price')).toThrow(InputError)
  })

  it.each([
    '1e-7', '1e3', '1E3', '1abc', 'abc', '-1', '-0', '+1', 'NaN', 'Infinity', '01', '00', '', ' 1', '1 ', '1\n', '\n1', '.5', '5.', '.', '1.2.3',
    '1,5', '1,000', '1_000', '0x10', '0b1', '１', '１.５', '٣', '1.٣', '½', '$1', '1 USD', '1٫5', '1．5', '\u200b1', '\u22121', 'null',
  ])('refuses %j as no decimal', (text) => {
    expect(() => parseUsd(text, 'price')).toThrow(/^price: expected USD in decimal, such as 0\.25, not "/)
  })

  it('is written without trailing zeros, never with an exponent', () => {
    const written = [0n, 1n, 10n, 1_100n, 250_000n, 1_000_000n, 1_000_001n, MAX_AMOUNT, 10n ** 21n].map(formatUsd)
    expect(written).toEqual(['0', '0.000001', '0.00001', '0.0011', '0.25', '1', '1.000001', '9007199254.740991', '1000000000000000'])
  })

  it('of a loss has its sign in front', () => {
    expect([-1n, -1_500_000n].map(formatUsd)).toEqual(['-0.000001', '-1.5'])
  })

  it('survives writing and reading, for every amount', () => {
    fc.assert(fc.property(amounts, (amount) => { expect(parseUsd(formatUsd(amount), 'x')).toBe(amount) }))
  })

  it('means what its digits say, for every text it reads', () => {
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), maxLength: 18 })
    fc.assert(
      fc.property(digits, fc.option(digits), (whole, decimals) => {
        const text = decimals === null ? whole : `${whole}.${decimals}`
        let amount
        try {
          amount = parseUsd(text, 'x')
        } catch (error) {
          expect(error).toBeInstanceOf(InputError)
          return
        }
        expect(amount).toBeLessThanOrEqual(MAX_AMOUNT)
        expect(amount).toBe(BigInt(whole + (decimals ?? '').padEnd(6, '0')))
      }),
    )
  })
})

describe('micro-USD in text', () => {
  it('is a whole number up to the largest amount', () => {
    expect(parseMicroUsd('0', 'amount')).toBe(0n)
    expect(parseMicroUsd('250000', 'amount')).toBe(250_000n)
    expect(parseMicroUsd('9007199254740991', 'amount')).toBe(MAX_AMOUNT)
    fc.assert(fc.property(amounts, (amount) => { expect(parseMicroUsd(amount.toString(), 'x')).toBe(amount) }))
  })

  it('past the largest amount is refused by one micro-USD', () => {
    expect(() => parseMicroUsd('9007199254740992', 'amount')).toThrow(
      'amount: 9007199254740992 is more than the largest amount, 9007199254740991',
    )
  })

  it.each(['', '01', '00', '-1', '+1', '1.0', '1e3', ' 1', '1\n', 'NaN', '0x1', '１', '1'.repeat(17), 1, 1n, null, undefined, ['1'], {}])(
    'refuses %o',
    (text) => {
      expect(() => parseMicroUsd(text, 'amount')).toThrow(/^amount: expected micro-USD as a whole number in text, not /)
      expect(() => parseMicroUsd(text, 'amount')).toThrow(InputError)
    },
  )
})
