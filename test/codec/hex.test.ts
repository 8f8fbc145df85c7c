import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describe as kindOf, fromHex, InputError, isId, parseId, quote, shortId, toHex } from '../../src/codec/index.js'

const someId = '0123456789abcdef'.repeat(4)

describe('hex', () => {
  it('reads back what it wrote, for any bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        const text = toHex(bytes)
        expect(text).toBe(Buffer.from(bytes).toString('hex'))
        expect(fromHex(text, 'x')).toEqual(bytes)
      }),
    )
  })

  it('has one spelling for a value: what it reads, it writes again', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'09afAFgxG +-é'), maxLength: 8 }), (text) => {
        let bytes
        try {
          bytes = fromHex(text, 'x')
        } catch (error) {
          expect(error).toBeInstanceOf(InputError)
          return
        }
        expect(toHex(bytes)).toBe(text)
      }),
    )
  })

  it.each([
    ['AB', 'key: expected lower-case hex digits only'],
    ['0x', 'key: expected lower-case hex digits only'],
    ['abc', 'key: hex of odd length 3'],
    ['٠٠', 'key: expected lower-case hex digits only'],
    ['0g', 'key: expected lower-case hex digits only'],
    ['0/', 'key: expected lower-case hex digits only'],
    ['0:', 'key: expected lower-case hex digits only'],
    ['0`', 'key: expected lower-case hex digits only'],
    ['\n0', 'key: expected lower-case hex digits only'],
    [7, 'key: expected hex text, not a number'],
    [null, 'key: expected hex text, not null'],
    [undefined, 'key: expected hex text, not nothing'],
    [['ab'], 'key: expected hex text, not an array'],
    [{}, 'key: expected hex text, not an object'],
    [10n, 'key: expected hex text, not a bigint'],
  ])('refuses %o and names the field', (text, message) => {
    expect(() => fromHex(text, 'key')).toThrow(new InputError('key', message.slice(5)))
  })

  it('takes exactly the length that is asked for', () => {
    expect(fromHex('abcd', 'salt', 2)).toEqual(Uint8Array.of(0xab, 0xcd))
    expect(fromHex('', 'salt', 0)).toEqual(new Uint8Array(0))
    for (const text of ['ab', 'abcdef', 'abc', '']) {
      expect(() => fromHex(text, 'salt', 2)).toThrow(`salt: expected 4 hex digits, not ${text.length}`)
    }
  })
})

describe('an id', () => {
  it('is 64 lower-case hex digits and nothing else', () => {
    expect(parseId(someId, 'stream')).toBe(someId)
    expect(isId(someId)).toBe(true)
    expect(shortId(someId)).toBe('01234567')
    for (const wrong of [someId.toUpperCase(), someId.slice(1), `${someId}0`, `${someId}\n`, ` ${someId}`, `0x${someId.slice(2)}`, 7, null]) {
      expect(isId(wrong)).toBe(false)
      expect(() => parseId(wrong, 'stream')).toThrow(/^stream: expected an id of 64 lower-case hex digits, not /)
    }
  })
})

describe('a value from outside in an error', () => {
  it('is cut, quoted and printable on one line', () => {
    expect(quote('bob')).toBe('"bob"')
    expect(quote('x'.repeat(40))).toBe(`"${'x'.repeat(40)}"`)
    expect(quote('x'.repeat(41))).toBe(`"${'x'.repeat(40)}…"`)
    expect(quote('a"\n\u0007')).toBe('"a\\"\\n\\u0007"')
    expect(quote('\ud800')).toBe('"\\ud800"')
  })

  it('cannot steer a terminal or turn the direction of writing', () => {
    expect(quote('\u009b31m')).toBe('"\\u009b31m"')
    expect(quote('\u007f\u2028\u2029')).toBe('"\\u007f\\u2028\\u2029"')
    expect(quote('\u202egnp\u2069')).toBe('"\\u202egnp\\u2069"')
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), (text) => {
        const shown = quote(text)
        expect(shown.isWellFormed()).toBe(true)
        expect(shown).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u)
        if (text.length <= 40) expect(JSON.parse(shown)).toBe(text)
      }),
    )
  })

  it('is named by its kind when it is no text', () => {
    expect([null, undefined, [], {}, 1, true, 1n].map(kindOf)).toEqual([
      'null', 'nothing', 'an array', 'an object', 'a number', 'a boolean', 'a bigint',
    ])
  })
})
