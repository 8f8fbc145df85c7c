import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InputError } from '../../src/codec/index.js'

/** A kind of thing with canonical bytes. */
export interface Canonical<T> {
  readonly encode: (value: T) => Uint8Array
  readonly decode: (bytes: Uint8Array) => T
}

/** That a value comes back from its bytes as it was. `value` spells absent fields as undefined, as decoding does. */
export function expectRoundTrip<T>({ encode, decode }: Canonical<T>, value: T): void {
  const back = decode(encode(value))
  // Deep equality in C++: vitest's takes a millisecond for a signature.
  if (!isDeepStrictEqual(back, value)) expect(back).toStrictEqual(value)
}

/**
 * That bytes from anywhere are refused with an InputError which quotes none of them, or are the one encoding of what they
 * decode to. Returns whether they were refused.
 */
export function expectCanonical<T>({ encode, decode }: Canonical<T>, bytes: Uint8Array): 'refused' | 'decoded' {
  let value: T
  try {
    value = decode(bytes)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    // A u64 has 20 decimal digits at most.
    expect(error.message).not.toMatch(/[0-9a-f]{21}/)
    expect(error.message.length).toBeLessThan(200)
    return 'refused'
  }
  if (Buffer.compare(encode(value), bytes) !== 0) {
    throw new Error(`two encodings of one value: ${Buffer.from(bytes).toString('hex')}`)
  }
  return 'decoded'
}

type Change = (bytes: Uint8Array) => Uint8Array

/** Where the structure is rather than somewhere in a key: near the ends as often as anywhere. */
const places = fc.oneof(fc.nat(120), fc.nat(), fc.nat(120).map((back) => -1 - back))

function placeIn(bytes: Uint8Array, place: number): number {
  if (bytes.length === 0) return 0
  return place < 0 ? Math.max(0, bytes.length + place) : place % bytes.length
}

const flip = fc.tuple(places, fc.nat(7)).map(([place, bit]): Change => (bytes) => {
  const changed = bytes.slice()
  const at = placeIn(bytes, place)
  if (at < changed.length) changed[at] = changed[at]! ^ (1 << bit)
  return changed
})
const overwrite = fc.tuple(places, fc.uint8Array({ minLength: 1, maxLength: 8 })).map(([place, run]): Change => (bytes) => {
  const changed = bytes.slice()
  const at = placeIn(bytes, place)
  changed.set(run.subarray(0, changed.length - at), at)
  return changed
})
const truncate = places.map((place): Change => (bytes) => bytes.slice(0, placeIn(bytes, place)))
const extend = fc.uint8Array({ minLength: 1, maxLength: 40 }).map((tail): Change => (bytes) => Uint8Array.of(...bytes, ...tail))
const insert = fc.tuple(places, fc.uint8Array({ minLength: 1, maxLength: 4 })).map(([place, run]): Change => (bytes) => {
  const at = placeIn(bytes, place)
  return Uint8Array.of(...bytes.subarray(0, at), ...run, ...bytes.subarray(at))
})
const remove = fc.tuple(places, fc.integer({ min: 1, max: 40 })).map(([place, length]): Change => (bytes) => {
  const at = placeIn(bytes, place)
  return Uint8Array.of(...bytes.subarray(0, at), ...bytes.subarray(at + length))
})

/** One or two changes to bytes: a bit, a run, cut off, more behind, more or less in between. */
export const changes: fc.Arbitrary<Change> = fc
  .array(fc.oneof(flip, overwrite, truncate, extend, insert, remove), { minLength: 1, maxLength: 2 })
  .map((steps): Change => (bytes) => steps.reduce((changed, step) => step(changed), bytes))

/** What holds for the bytes of every kind of thing: `values` and random changes of their bytes. */
export function describeBytes<T>(name: string, kind: Canonical<T>, values: fc.Arbitrary<T>): void {
  describe(`the bytes of ${name}`, () => {
    it('come back as what they were made from', () => {
      fc.assert(
        fc.property(values, (value) => {
          expectRoundTrip(kind, value)
        }),
      )
    })

    it('changed anywhere are refused, or are the only bytes of another value', () => {
      const met = { refused: 0, decoded: 0 }
      fc.assert(
        fc.property(values, changes, (value, change) => {
          met[expectCanonical(kind, change(kind.encode(value)))]++
        }),
        { numRuns: 250 },
      )
      // Both happen, or the changes test nothing.
      expect(met.refused).toBeGreaterThan(20)
      expect(met.decoded).toBeGreaterThan(20)
    })

    it('are not found in noise', () => {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 700 }), (noise) => {
          expectCanonical(kind, noise)
        }),
      )
    })
  })
}

/** Every single flipped bit, every shorter length and a longer one, each canonical or refused. */
export function expectEveryChangeCanonical<T>(kind: Canonical<T>, bytes: Uint8Array, until = bytes.length): void {
  for (let at = 0; at < until; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = bytes.slice()
      changed[at] = changed[at]! ^ (1 << bit)
      expectCanonical(kind, changed)
    }
  }
  for (let length = 0; length < bytes.length; length++) expect(expectCanonical(kind, bytes.slice(0, length))).toBe('refused')
  for (const tail of [[0], [1], [255], [0, 0, 0, 0]]) expect(expectCanonical(kind, Uint8Array.of(...bytes, ...tail))).toBe('refused')
}
