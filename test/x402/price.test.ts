import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatUsd, InputError } from '../../src/codec/index.js'
import { parsePrice, usd } from '../../src/x402/price.js'

describe('a price', () => {
  it.each([
    ['0.25', 250_000n],
    ['0.000001', 1n],
    ['0.100000', 100_000n],
    ['1', 1_000_000n],
    ['1.10', 1_100_000n],
    ['9007199254.740991', 2n ** 53n - 1n],
    ['free', 0n],
  ])('of %s is exact', (text, amount) => {
    expect(parsePrice(text)).toBe(amount)
  })

  it.each([
    ['0.0000001', /7 decimals; USD has at most 6/],
    ['0.1000000', /7 decimals/],
    ['1e-7', /in decimal/],
    ['1e3', /in decimal/],
    ['1abc', /in decimal/],
    ['-1', /in decimal/],
    ['+1', /in decimal/],
    ['NaN', /in decimal/],
    ['Infinity', /in decimal/],
    ['', /in decimal/],
    [' 1', /in decimal/],
    ['1 ', /in decimal/],
    ['1\n', /in decimal/],
    ['.5', /in decimal/],
    ['5.', /in decimal/],
    ['01', /in decimal/],
    ['1,5', /in decimal/],
    ['1_000', /in decimal/],
    ['0x10', /in decimal/],
    ['$1', /in decimal/],
    ['１', /in decimal/],
    ['9'.repeat(30), /more than the largest amount, 9007199254\.740991/],
    ['9007199254.740992', /more than the largest amount/],
    ['0', /must be said as "free"/],
    ['0.000000', /must be said as "free"/],
    ['FREE', /in decimal/],
  ])('of %j is refused with the reason', (text, reason) => {
    expect(() => parsePrice(text)).toThrow(reason)
    expect(() => parsePrice(text)).toThrow(InputError)
    expect(() => parsePrice(text, 'price of /a')).toThrow(/^price of \/a: /)
  })

  it.each([[0.25, 'a number'], [1n, 'a bigint'], [null, 'null'], [undefined, 'nothing'], [['1'], 'an array'], [{}, 'an object'], [true, 'a boolean']])(
    'that is no text is refused: %s',
    (value, kind) => {
      expect(() => parsePrice(value)).toThrow(new RegExp(`not ${kind}$`))
    },
  )

  it('survives being said and read again, whatever it is', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 1n, max: 2n ** 53n - 1n }), (amount) => {
        expect(parsePrice(formatUsd(amount))).toBe(amount)
        expect(usd(amount)).toBe(`${formatUsd(amount)} USD`)
      }),
    )
  })

  it('is an amount or an input error, whatever text it is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.double().map(String), fc.bigInt().map(String)), (text) => {
        try {
          expect(parsePrice(text)).toBeGreaterThanOrEqual(0n)
        } catch (error) {
          expect(error).toBeInstanceOf(InputError)
        }
      }),
    )
  })
})
