import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'
import * as fc from 'fast-check'
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fromHex, toHex } from '../../src/codec/index.js'
import {
  checkpointCount,
  checkpointEntry,
  createWalker,
  MAX_POSITION,
  walkDown,
} from '../../src/crypto/chain-step.js'

function message(salt: Uint8Array, position: number, element: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(52)
  bytes.set(salt)
  new DataView(bytes.buffer).setUint32(16, position)
  bytes.set(element, 20)
  return bytes
}

function nodeStep(salt: Uint8Array, position: number, element: Uint8Array): Uint8Array {
  return new Uint8Array(createHash('sha256').update(message(salt, position, element)).digest())
}

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })

describe('the chain step', () => {
  it('is SHA-256 of salt, position and element, at fixed inputs', () => {
    const zeros = walkDown(new Uint8Array(16), 1, new Uint8Array(32), 0)
    // sha256sum of 19 zero bytes, 01, and 32 zero bytes.
    expect(toHex(zeros)).toBe('f8e8bd6f28850927a1f247e2803e32a66fa7d3e873284d9d61407865368b86f9')
    const salt = fromHex('000102030405060708090a0b0c0d0e0f', 'salt')
    const ones = new Uint8Array(32).fill(0xff)
    for (const position of [1, 2, 63, 64, 65, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, MAX_POSITION]) {
      expect(walkDown(salt, position, ones, position - 1)).toEqual(nodeStep(salt, position, ones))
      expect(walkDown(salt, position, ones, position - 1)).toEqual(nobleSha256(message(salt, position, ones)))
    }
  })

  it('agrees with node:crypto and @noble/hashes on random inputs', () => {
    fc.assert(
      fc.property(bytes(16), fc.integer({ min: 1, max: MAX_POSITION }), bytes(32), (salt, position, element) => {
        const ours = walkDown(salt, position, element, position - 1)
        expect(ours).toEqual(nodeStep(salt, position, element))
        expect(ours).toEqual(nobleSha256(message(salt, position, element)))
      }),
      { numRuns: 2_000 },
    )
  })

  it('walks as many steps as the positions are apart, whole or in pieces', () => {
    fc.assert(
      fc.property(
        bytes(16),
        fc.integer({ min: 200, max: MAX_POSITION }),
        bytes(32),
        fc.nat(150),
        fc.nat(40),
        (salt, from, element, first, second) => {
          let expected: Uint8Array = element
          for (let i = 0; i < first + second; i++) expected = nodeStep(salt, from - i, expected)
          const walker = createWalker(salt)
          const between = walker.down(element, from, from - first)
          expect(walker.down(between, from - first, from - first - second)).toEqual(expected)
          expect(walker.reaches(element, from, expected, from - first - second)).toBe(true)
        },
      ),
      { numRuns: 100 },
    )
  })

  it('leaves its input alone, and writes where it is told, also onto the input', () => {
    const salt = new Uint8Array(16).fill(7)
    const value = new Uint8Array(32).fill(9)
    const walker = createWalker(salt)
    const fresh = walker.down(value, 10, 5)
    expect(value).toEqual(new Uint8Array(32).fill(9))
    expect(walker.down(value, 10, 5, value)).toBe(value)
    expect(value).toEqual(fresh)
  })

  it('keeps walkers of different salts apart when they take turns', () => {
    const element = new Uint8Array(32).fill(3)
    const one = createWalker(new Uint8Array(16).fill(1))
    const two = createWalker(new Uint8Array(16).fill(2))
    const first = one.down(element, 9, 8)
    two.down(element, 9, 8)
    expect(one.down(element, 9, 8)).toEqual(first)
    expect(two.down(element, 9, 8)).not.toEqual(first)
  })

  it('notices a single wrong bit anywhere in the expected element', () => {
    const walker = createWalker(new Uint8Array(16))
    const value = new Uint8Array(32).fill(1)
    const expected = walker.down(value, 3, 0)
    for (let bit = 0; bit < 256; bit++) {
      const wrong = expected.slice()
      wrong[bit >> 3]! ^= 1 << (bit & 7)
      expect(walker.reaches(value, 3, wrong, 0)).toBe(false)
    }
  })

  it('refuses what is not a walk', () => {
    const walker = createWalker(new Uint8Array(16))
    const element = new Uint8Array(32)
    for (const [from, to] of [
      [1, 2],
      [0, -1],
      [2 ** 32, 0],
      [1.5, 0],
      [Number.NaN, 0],
      [Number.POSITIVE_INFINITY, 0],
    ] as const) {
      expect(() => walker.down(element, from, to)).toThrow(RangeError)
    }
    expect(() => walker.down(new Uint8Array(31), 1, 0)).toThrow(RangeError)
    expect(() => walker.down(element, 1, 0, new Uint8Array(33))).toThrow(RangeError)
    expect(() => walker.reaches(element, 1, new Uint8Array(33), 0)).toThrow(RangeError)
    expect(() => createWalker(new Uint8Array(15))).toThrow(RangeError)
  })
})

describe('checkpoints', () => {
  it('are every 64th element, and their entry holds the index', () => {
    expect([0, 1, 63, 64, 127, 128, 1_000_000].map(checkpointCount)).toEqual([0, 0, 0, 1, 1, 2, 15_625])
    const element = new Uint8Array(32).fill(0xab)
    expect(toHex(checkpointEntry(258, element))).toBe(`00000102${'ab'.repeat(32)}`)
  })
})
