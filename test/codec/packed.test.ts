import * as fc from 'fast-check'
import * as P from 'micro-packed'
import { describe, expect, it } from 'vitest'
import { amount, byKind, count, hexBytes, id, InputError, isPrintable, list, MAX_AMOUNT, maybe, text, toHex, unpack } from '../../src/codec/index.js'
import { expectCanonical, expectEveryChangeCanonical, expectRoundTrip, type Canonical } from '../support/canonical.js'

const utf8 = (value: string): Uint8Array => new TextEncoder().encode(value)
const kindOf = <T>(coder: P.CoderType<T>): Canonical<T> => ({ encode: (value) => coder.encode(value), decode: (bytes) => unpack(coder, bytes, 'it') })
const many = (length: number, byte = 0): number[] => Array.from({ length }, () => byte)
const refusal = <T>(coder: P.CoderType<T>, ...bytes: number[]): string => {
  try {
    unpack(coder, Uint8Array.from(bytes), 'it')
  } catch (error) {
    if (error instanceof InputError) return error.message
    throw error
  }
  throw new Error('decoded')
}

describe('money in bytes', () => {
  it('is a u64, big-endian, from 0 to 2^53 − 1', () => {
    expect(toHex(amount.encode(250_000n))).toBe('000000000003d090')
    expect(toHex(amount.encode(MAX_AMOUNT))).toBe('001fffffffffffff')
    for (const value of [0n, 1n, MAX_AMOUNT]) expectRoundTrip(kindOf(amount), value)
  })

  it('past that by one is refused both ways, and so is less than nothing', () => {
    expect(refusal(amount, 0, 0x20, 0, 0, 0, 0, 0, 0)).toMatch(/^it: not its canonical encoding \(.*amount 9007199254740992 is over 9007199254740991\)$/)
    expect(refusal(amount, 255, 255, 255, 255, 255, 255, 255, 255)).toContain('is over')
    for (const value of [MAX_AMOUNT + 1n, -1n, 2n ** 64n, 2n ** 64n + 1n]) expect(() => amount.encode(value)).toThrow()
  })
})

describe('a count in bytes', () => {
  it('is a u64 that a number holds exactly', () => {
    expect(toHex(count.encode(238))).toBe('00000000000000ee')
    for (const value of [0, 1, Number.MAX_SAFE_INTEGER]) expectRoundTrip(kindOf(count), value)
    expect(refusal(count, 0, 0x20, 0, 0, 0, 0, 0, 0)).toContain('is over')
    expect(refusal(count, 0x80, 0, 0, 0, 0, 0, 0, 0)).toContain('is over')
    for (const value of [-1, 0.5, NaN, Infinity, 2 ** 53, -0.1]) expect(() => count.encode(value)).toThrow('is not a count')
  })
})

describe('hex in bytes', () => {
  it('has a fixed length and one spelling', () => {
    expectRoundTrip(kindOf(id), 'ab'.repeat(32))
    expectRoundTrip(kindOf(hexBytes(16)), '0f'.repeat(16))
    for (const value of ['AB'.repeat(32), 'ab'.repeat(31), 'ab'.repeat(33), '', 'zz'.repeat(32)]) expect(() => id.encode(value)).toThrow('hex')
    expect(refusal(id, ...many(31))).toContain('Unexpected end')
    expect(refusal(id, ...many(33))).toBe('it: not its canonical encoding (1 bytes too many)')
  })
})

describe('a yes or no in bytes', () => {
  it('is 0 or 1: everything else is refused', () => {
    expect(unpack(P.bool, Uint8Array.of(0), 'it')).toBe(false)
    expect(unpack(P.bool, Uint8Array.of(1), 'it')).toBe(true)
    for (let byte = 2; byte < 256; byte++) expect(refusal(P.bool, byte)).toContain(`invalid value ${byte}`)
  })

  it('in front of what may be absent is so too', () => {
    const coder = maybe(P.U8)
    expect(toHex(coder.encode(undefined))).toBe('00')
    expect(toHex(coder.encode(0))).toBe('0100')
    for (const value of [undefined, 0, 255]) expectRoundTrip(kindOf(coder), value)
    for (const bytes of [[], [1], [0, 0], [2, 0], [255, 0], [1, 0, 0]]) refusal(coder, ...bytes)
  })
})

describe('text in bytes', () => {
  const short = text(120)
  const long = text(512)

  it('has its length in bytes before it, in one byte or two', () => {
    expect(toHex(short.encode('é'))).toBe('02c3a9')
    expect(toHex(long.encode('é'))).toBe('0002c3a9')
    expect(toHex(text(255).encode(''))).toBe('00')
    expect(toHex(text(256).encode(''))).toBe('0000')
  })

  it('round-trips everything printable, emoji, BOM and right-to-left scripts included', () => {
    for (const value of ['', 'x402:00ff', '👩‍👩‍👧 ⛅️', '\ufeffx', 'שלום', 'e\u0301', '\u00a0', '\uffff', '\u{10ffff}', '"\\']) {
      expectRoundTrip(kindOf(short), value)
    }
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (value) => {
        if (isPrintable(value) && utf8(value).length <= 120) expectRoundTrip(kindOf(short), value)
        else expect(() => short.encode(value)).toThrow()
      }),
    )
  })

  it('is counted in bytes, not in characters, and one too many is refused both ways', () => {
    for (const [coder, most] of [[short, 120], [long, 512]] as const) {
      expectRoundTrip(kindOf(coder), 'x'.repeat(most))
      expectRoundTrip(kindOf(coder), 'é'.repeat(most / 2))
      expectRoundTrip(kindOf(coder), '😀'.repeat(most / 4))
      expect(() => coder.encode('x'.repeat(most + 1))).toThrow(`text of ${most + 1} bytes is over ${most}`)
      expect(() => coder.encode(`x${'é'.repeat(most / 2)}`)).toThrow(`text of ${most + 1} bytes is over ${most}`)
    }
    expect(refusal(short, 121, ...many(121, 0x78))).toContain('text of 121 bytes is over 120')
    expect(refusal(long, 2, 1, ...many(513, 0x78))).toContain('text of 513 bytes is over 512')
    expect(refusal(short, 3, 0x78, 0x78)).toContain('Unexpected end')
  })

  it.each([
    ['a lone high surrogate', '\ud800'],
    ['a lone low surrogate', 'a\udfffb'],
    ['surrogates in the wrong order', '\udc00\ud800'],
  ])('never writes %s, which would be read back as another text', (_, value) => {
    expect(() => short.encode(value)).toThrow('text with a control character or a lone surrogate')
  })

  it.each([
    ['a bare continuation byte', [0x80]],
    ['an overlong NUL', [0xc0, 0x80]],
    ['an overlong slash in two bytes', [0xc0, 0xaf]],
    ['an overlong slash in three', [0xe0, 0x80, 0xaf]],
    ['an overlong slash in four', [0xf0, 0x80, 0x80, 0xaf]],
    ['a surrogate', [0xed, 0xa0, 0x80]],
    ['a pair of surrogates (CESU-8)', [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]],
    ['a code point past U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['half a character', [0xc3]],
    ['the byte 0xff', [0xff]],
  ])('refuses UTF-8 with %s', (_, bytes) => {
    expect(refusal(short, bytes.length, ...bytes)).toMatch(/^it: not its canonical encoding/)
  })

  it('refuses what a terminal obeys, what breaks a line and what turns the direction of writing', () => {
    const refused = ['\u0000', '\t', '\n', '\r', '\u001b[31m', '\u001f', '\u007f', '\u0080', '\u009b31m', '\u009f', '\u2028', '\u2029']
    const turning = ['\u061c', '\u200e', '\u200f', '\u202a', '\u202b', '\u202c', '\u202d', '\u202e', '\u2066', '\u2067', '\u2068', '\u2069']
    for (const mark of [...refused, ...turning]) {
      const value = `to bob${mark}`
      expect(isPrintable(value)).toBe(false)
      expect(() => short.encode(value)).toThrow('control character')
      const bytes = utf8(value)
      expect(refusal(short, bytes.length, ...bytes)).toContain('control character')
    }
  })
})

describe('a list in bytes', () => {
  const coder = list(P.U8, 3)

  it('has its length before it, up to its limit and not one more', () => {
    expect(toHex(coder.encode([7, 8]))).toBe('00020708')
    for (const value of [[], [1], [1, 2, 3]]) expectRoundTrip(kindOf(coder), value)
    expect(() => coder.encode([1, 2, 3, 4])).toThrow('list of 4 is over 3')
    expect(refusal(coder, 0, 4, 1, 2, 3, 4)).toContain('list of 4 is over 3')
  })

  it('that claims more than there is costs nothing', () => {
    expect(refusal(coder, 255, 255)).toContain('65535')
    expect(refusal(list(text(9), 3), 255, 255, 0)).toContain('Unexpected end')
    expect(refusal(coder, 0)).toContain('Unexpected end')
  })
})

describe('a union in bytes', () => {
  type Shape = { readonly kind: 'point' } | { readonly kind: 'circle'; readonly radius: number }
  const coder = byKind<Shape>({ point: [1, P.struct({})], circle: [7, P.struct({ radius: P.U8 })] })

  it('begins with the tag of its kind', () => {
    expect(toHex(coder.encode({ kind: 'point' }))).toBe('01')
    expect(toHex(coder.encode({ kind: 'circle', radius: 2 }))).toBe('0702')
    expectRoundTrip(kindOf(coder), { kind: 'point' })
    expectRoundTrip(kindOf(coder), { kind: 'circle', radius: 255 })
    expectEveryChangeCanonical(kindOf(coder), coder.encode({ kind: 'circle', radius: 2 }))
  })

  it('under a tag that nobody listed is refused', () => {
    for (let tag = 0; tag < 256; tag++) {
      if (tag !== 1 && tag !== 7) refusal(coder, tag)
      if (tag !== 7) refusal(coder, tag, 0)
    }
    refusal(coder)
  })
})

describe('unpacking', () => {
  const pair = P.struct({ head: P.bytes(2), tail: list(P.bytes(1), 2) })
  const bytes = pair.encode({ head: Uint8Array.of(1, 2), tail: [Uint8Array.of(3)] })

  it('gives a value of its own: neither views of the bytes nor a Buffer’s slices', () => {
    const source = Buffer.from(bytes)
    const value = unpack(pair, source, 'pair')
    source.fill(9)
    expect(value).toStrictEqual({ head: Uint8Array.of(1, 2), tail: [Uint8Array.of(3)] })
    for (const part of [value.head, ...value.tail]) expect(Object.getPrototypeOf(part)).toBe(Uint8Array.prototype)
  })

  it('names what it could not read and keeps the cause', () => {
    let refused: unknown
    try {
      unpack(pair, bytes.subarray(1), 'pair')
    } catch (error) {
      refused = error
    }
    expect(refused).toBeInstanceOf(InputError)
    expect(refused).toMatchObject({ code: 'invalid_input', field: 'pair', cause: expect.any(Error) })
  })

  it('counts the bytes left over and does not show them: they may be a payment’s', () => {
    const secret = new Uint8Array(1_000).fill(0xab)
    let refused: unknown
    try {
      unpack(pair, Uint8Array.of(...bytes, ...secret), 'pair')
    } catch (error) {
      refused = error
    }
    expect(refused).toMatchObject({ message: 'pair: not its canonical encoding (1000 bytes too many)' })
    const shown = refused instanceof Error ? `${refused.stack}${String(refused.cause)}` : ''
    expect(shown).not.toContain('abab')
  })

  it('takes any bytes at all to a value or to an InputError', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (noise) => {
        expectCanonical(kindOf(amount), noise)
        expectCanonical(kindOf(count), noise)
        expectCanonical(kindOf(id), noise)
        expectCanonical(kindOf(text(9)), noise)
        expectCanonical(kindOf(text(300)), noise)
        expectCanonical(kindOf(list(text(5), 4)), noise)
        expectCanonical(kindOf(maybe(hexBytes(3))), noise)
        expectCanonical(kindOf(pair), noise)
      }),
      { numRuns: 300 },
    )
  })
})
