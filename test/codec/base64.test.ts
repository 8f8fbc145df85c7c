import * as fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { base64ToText, fromBase64, InputError, textToBase64, toBase64 } from '../../src/codec/index.js'

afterEach(() => {
  vi.unstubAllGlobals()
})

function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, at) => byte === b[at])
}

/** RFC 4648 §10. */
const published = [['', ''], ['f', 'Zg=='], ['fo', 'Zm8='], ['foo', 'Zm9v'], ['foob', 'Zm9vYg=='], ['fooba', 'Zm9vYmE='], ['foobar', 'Zm9vYmFy']] as const

describe.each([['Node, with Buffer', false], ['an edge runtime, without Buffer', true]])('base64 on %s', (_, edge) => {
  const onThisRuntime = (act: () => void): void => {
    if (edge) vi.stubGlobal('Buffer', undefined)
    act()
    vi.unstubAllGlobals()
  }

  it('agrees with the vectors of RFC 4648 §10', () => {
    onThisRuntime(() => {
      for (const [text, encoded] of published) {
        expect(textToBase64(text)).toBe(encoded)
        expect(base64ToText(encoded, 'x')).toBe(text)
      }
    })
  })

  it('reads both alphabets, with and without padding, and writes the standard one', () => {
    const bytes = Uint8Array.of(0xfb, 0xff, 0xfe, 0xfa)
    onThisRuntime(() => {
      expect(toBase64(bytes)).toBe('+//++g==')
      for (const text of ['+//++g==', '+//++g', '-__--g==', '-__--g']) expect(fromBase64(text, 'x')).toEqual(bytes)
    })
  })

  it('round-trips any bytes in every spelling, also from the middle of a larger array', () => {
    onThisRuntime(() => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 70 }), fc.nat(5), (whole, skip) => {
          const bytes = whole.subarray(Math.min(skip, whole.length))
          const standard = toBase64(bytes)
          const url = standard.replaceAll('+', '-').replaceAll('/', '_')
          for (const text of [standard, url, standard.replaceAll('=', ''), url.replaceAll('=', '')]) {
            expect([...fromBase64(text, 'x')]).toEqual([...bytes])
          }
        }),
      )
    })
  })

  it('carries more bytes than fit into the arguments of one call', () => {
    const bytes = new Uint8Array(70_000).map((_, at) => at % 251)
    onThisRuntime(() => {
      expect(equalBytes(fromBase64(toBase64(bytes), 'x'), bytes)).toBe(true)
    })
  })

  it.each([
    ['Zg=', 'wrong length'], // half of its padding
    ['Zg===', 'not base64'],
    ['Zm8==', 'wrong length'],
    ['Zm9v=', 'wrong length'],
    ['Zm9v====', 'not base64'],
    ['=', 'wrong length'],
    ['==', 'wrong length'],
    ['Z', 'wrong length'],
    ['Zm9vY', 'wrong length'],
    ['Z=g=', 'not base64'],
    ['Zh==', 'leftover bits'], // decodes leniently to "f" too
    ['Zm9', 'leftover bits'],
    ['Zm9v\n', 'not base64'],
    [' Zm9v', 'not base64'],
    ['Zm 9v', 'not base64'],
    ['Zm9v.', 'not base64'],
    ['Zm９v', 'not base64'],
    ['%5A', 'not base64'],
    [7, 'not base64'],
    [null, 'not base64'],
    [undefined, 'not base64'],
    [['Zm9v'], 'not base64'],
  ])('refuses %o', (text, problem) => {
    onThisRuntime(() => {
      let refusal: unknown
      try {
        fromBase64(text, 'header')
      } catch (error) {
        refusal = error
      }
      expect(refusal).toBeInstanceOf(InputError)
      expect(String(refusal)).toContain('header: ')
      expect(String(refusal)).toContain(problem)
    })
  })

  it('never reads two values out of one text, nor one that it would write otherwise than by alphabet and padding', () => {
    onThisRuntime(() => {
      fc.assert(
        fc.property(fc.string({ unit: fc.constantFrom(...'AZaz09+/-_=Qg'), maxLength: 9 }), (text) => {
          let bytes
          try {
            bytes = fromBase64(text, 'x')
          } catch (error) {
            expect(error).toBeInstanceOf(InputError)
            return
          }
          const bare = text.replaceAll('=', '').replaceAll('-', '+').replaceAll('_', '/')
          expect(toBase64(bytes).replaceAll('=', '')).toBe(bare)
        }),
      )
    })
  })

  it('carries an emoji, a BOM and any well-formed text both ways', () => {
    onThisRuntime(() => {
      for (const text of ['weather for 🌦️ Zürich', '\ufeffx', '👩‍👩‍👧', '日本']) expect(base64ToText(textToBase64(text), 'x')).toBe(text)
      fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => { expect(base64ToText(textToBase64(text), 'x')).toBe(text) }))
    })
  })

  it.each([
    ['a bare continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['a code point past U+10FFFF', [0xf4, 0x90, 0x80, 0x80]],
    ['half an emoji', [0xf0, 0x9f, 0x98]],
  ])('refuses what is not UTF-8 underneath: %s', (_name, bytes) => {
    onThisRuntime(() => {
      expect(() => base64ToText(toBase64(Uint8Array.from(bytes)), 'header')).toThrow('header: not UTF-8 under its base64')
    })
  })
})
