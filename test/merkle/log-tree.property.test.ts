import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { toHex } from '../../src/codec/index.js'
import {
  consistencyPath,
  inclusionPath,
  leafHash,
  levelsOf,
  LogTree,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from '../../src/merkle/index.js'

// RFC 9162 §2.1.1, §2.1.3.1 and §2.1.4.1, word for word: slow, recursive, over another SHA-256.

type Hashes = readonly Uint8Array[]

function sha256(...parts: Uint8Array[]): Uint8Array {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return new Uint8Array(hash.digest())
}

function splitOf(n: number): number {
  let k = 1
  while (k * 2 < n) k *= 2
  return k
}

function mth(d: Hashes): Uint8Array {
  if (d.length === 0) return sha256()
  if (d.length === 1) return d[0]!
  const k = splitOf(d.length)
  return sha256(Uint8Array.of(1), mth(d.slice(0, k)), mth(d.slice(k)))
}

function path(m: number, d: Hashes): Uint8Array[] {
  if (d.length === 1) return []
  const k = splitOf(d.length)
  return m < k ? [...path(m, d.slice(0, k)), mth(d.slice(k))] : [...path(m - k, d.slice(k)), mth(d.slice(0, k))]
}

function subproof(m: number, d: Hashes, b: boolean): Uint8Array[] {
  if (m === d.length) return b ? [] : [mth(d)]
  const k = splitOf(d.length)
  return m <= k
    ? [...subproof(m, d.slice(0, k), b), mth(d.slice(k))]
    : [...subproof(m - k, d.slice(k), false), mth(d.slice(0, k))]
}

const all = Array.from({ length: 70 }, (_, i) => leafHash(Uint8Array.of(i)))
const hex = (path: Hashes): string[] => path.map(toHex)

describe('the log tree against the recursive definition', () => {
  it('has the same root, inclusion and consistency paths at every size up to 70', () => {
    const tree = LogTree.from(all)
    for (let size = 1; size <= all.length; size++) {
      const leaves = all.slice(0, size)
      const root = mth(leaves)
      expect(tree.root(size)).toEqual(root)
      for (let index = 0; index < size; index++) {
        const inclusion = tree.inclusion(index, size)
        expect(hex(inclusion)).toEqual(hex(path(index, leaves)))
        expect(verifyInclusion(root, size, index, leaves[index]!, inclusion)).toBe(true)
      }
      for (let first = 1; first < size; first++) {
        const consistency = tree.consistency(first, size)
        expect(hex(consistency)).toEqual(hex(subproof(first, leaves, true)))
        expect(verifyConsistency(first, size, mth(leaves.slice(0, first)), root, consistency)).toBe(true)
      }
    }
  })

  it('is one tree, however it is built: at once, by appending, from bytes, after forgetting', () => {
    fc.assert(
      fc.property(fc.nat(300), fc.nat(300), fc.nat(2 ** 30), (size, more, pick) => {
        const leaves = Array.from({ length: size }, (_, i) => leafHash(Uint8Array.of(i >> 8, i & 255)))
        const tree = LogTree.from(leaves)
        for (let i = 0; i < more; i++) tree.append(leafHash(Uint8Array.of(9, 9, i & 255)))
        expect(tree.root(size)).toEqual(rootOf(leaves))
        tree.truncate(size)
        const bytes = new Uint8Array(Buffer.concat(leaves))
        const levels = levelsOf(bytes)
        const root = mth(leaves)
        expect([tree.root(), levels.root, LogTree.fromBytes(bytes).root()]).toEqual([root, root, root])
        if (size === 0) return
        const index = pick % size
        const expected = hex(inclusionPath(leaves, index))
        expect(hex(tree.inclusion(index))).toEqual(expected)
        expect(hex(levels.path(index))).toEqual(expected)
        expect(hex(consistencyPath(leaves, index))).toEqual(hex(tree.consistency(index)))
      }),
    )
  })

  it('goes on growing after it was built from bytes and truncated, and leaves those bytes alone', () => {
    const bytes = new Uint8Array(Buffer.concat(all))
    const before = toHex(bytes)
    const tree = LogTree.fromBytes(bytes)
    tree.truncate(33)
    for (const leaf of all.slice(33, 37)) tree.append(leaf)
    tree.append(all[0]!)
    expect(tree.size).toBe(38)
    expect(tree.root()).toEqual(mth([...all.slice(0, 37), all[0]!]))
    expect(toHex(bytes)).toBe(before)
  })

  it('believes no inclusion of another leaf, place or size', () => {
    const sizes = fc.integer({ min: 1, max: 70 })
    fc.assert(
      fc.property(sizes, fc.nat(69), sizes, fc.nat(69), fc.nat(69), (size, at, otherSize, otherAt, leaf) => {
        const index = at % size
        const inclusion = path(index, all.slice(0, size))
        const root = mth(all.slice(0, size))
        const claimed = verifyInclusion(root, otherSize, otherAt, all[leaf]!, inclusion)
        // A path fits some other sizes too (that is why roots are committed to together with their size), but it never
        // shows a leaf that is not there.
        if (claimed) expect(leaf).toBe(index)
        if (otherSize === size) expect(claimed).toBe(leaf === index && otherAt === index)
      }),
      { numRuns: 2_000 },
    )
  })

  it('answers false, and throws nothing, for whatever it is handed as a proof', () => {
    const junk = fc.anything()
    const node = fc.oneof(fc.uint8Array({ minLength: 31, maxLength: 33 }), junk)
    const size = fc.oneof(fc.maxSafeNat(), fc.double(), junk)
    fc.assert(
      fc.property(size, size, node, node, fc.oneof(fc.array(node), junk), (a, b, x, y, nodes) => {
        // @ts-expect-error: types are no protection from what was parsed
        expect(verifyInclusion(x, b, a, y, nodes)).toBe(a === 0 && b === 1 && isEmpty(nodes) && same32(x, y))
        // @ts-expect-error: the same
        expect(verifyConsistency(a, b, x, y, nodes)).toBe(isSize(a) && a > 0 && a === b && isEmpty(nodes) && same32(x, y))
      }),
      { numRuns: 2_000 },
    )
  })
})

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}

function same32(a: unknown, b: unknown): boolean {
  return a instanceof Uint8Array && b instanceof Uint8Array && a.length === 32 && toHex(a) === toHex(b) && b.length === 32
}
