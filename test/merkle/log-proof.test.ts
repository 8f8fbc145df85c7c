import { describe, expect, it } from 'vitest'
import { InputError, toHex } from '../../src/codec/index.js'
import { sha256, taggedHash } from '../../src/crypto/hash.js'
import {
  committedRoot,
  decodePath,
  EMPTY_LOG_ROOT,
  encodePath,
  inclusionPath,
  leafHash,
  levelsOf,
  LogTree,
  nodeHash,
  rootOf,
  verifyConsistency,
  verifyInclusion,
} from '../../src/merkle/index.js'

const entries = Array.from({ length: 13 }, (_, i) => new TextEncoder().encode(`entry ${i}`))
const leaves = entries.map(leafHash)
const tree = LogTree.from(leaves)
const root = tree.root()
const zero = new Uint8Array(32)

function flipped(bytes: Uint8Array, bit: number): Uint8Array {
  const copy = bytes.slice()
  copy[bit >> 3]! ^= 1 << (bit & 7)
  return copy
}

describe('an inclusion proof', () => {
  const path = tree.inclusion(5)
  const check = (change: { root?: Uint8Array; size?: number; index?: number; leaf?: Uint8Array; path?: Uint8Array[] }): boolean => {
    const good = { root, size: 13, index: 5, leaf: leaves[5]!, path }
    const all = { ...good, ...change }
    return verifyInclusion(all.root, all.size, all.index, all.leaf, all.path)
  }

  it('shows a leaf at its place', () => {
    expect(check({})).toBe(true)
  })

  it('does not show a node as a leaf', () => {
    const left = leaves[4]!
    const right = leaves[5]!
    const upper = path.slice(1)
    for (let index = 0; index < 13; index++) {
      expect(check({ leaf: nodeHash(left, right), path: upper, index })).toBe(false)
      expect(check({ leaf: nodeHash(left, right), index })).toBe(false)
    }
    // Under a size half as large the node's own hash would stand where a leaf does. No entry has that leaf hash.
    expect(check({ leaf: nodeHash(left, right), path: upper, index: 2, size: 7 })).toBe(true)
    for (const entry of [[...left, ...right], [1, ...left, ...right]]) {
      expect(check({ leaf: leafHash(Uint8Array.from(entry)), path: upper, index: 2, size: 7 })).toBe(false)
    }
  })

  it('does not show a forged entry of 64 bytes that hashes like a node', () => {
    const forged = new Uint8Array([...leaves[0]!, ...leaves[1]!])
    expect(leafHash(forged)).not.toEqual(nodeHash(leaves[0]!, leaves[1]!))
    const two = rootOf(leaves.slice(0, 2))
    expect(verifyInclusion(two, 1, 0, leafHash(forged), [])).toBe(false)
    expect(verifyInclusion(two, 1, 0, leafHash(new Uint8Array([1, ...forged])), [])).toBe(false)
  })

  it('does not show a last leaf twice: [a, b, c] has another root than [a, b, c, c]', () => {
    const three = leaves.slice(0, 3)
    const four = [...three, leaves[2]!]
    expect(rootOf(three)).not.toEqual(rootOf(four))
    expect(verifyInclusion(rootOf(three), 4, 3, leaves[2]!, inclusionPath(four, 3))).toBe(false)
    expect(verifyInclusion(rootOf(three), 3, 2, leaves[2]!, inclusionPath(four, 2))).toBe(false)
  })

  it('is refused when it is too short, too long, or empty', () => {
    expect(check({ path: path.slice(1) })).toBe(false)
    expect(check({ path: path.slice(0, -1) })).toBe(false)
    expect(check({ path: [] })).toBe(false)
    for (const extra of [root, zero, leaves[5]!, EMPTY_LOG_ROOT]) {
      expect(check({ path: [...path, extra] })).toBe(false)
      expect(check({ path: [extra, ...path] })).toBe(false)
    }
    expect(check({ path: Array.from({ length: 1_000_000 }, () => zero) })).toBe(false)
  })

  it('needs no path for the only leaf, and refuses one', () => {
    expect(verifyInclusion(leaves[0]!, 1, 0, leaves[0]!, [])).toBe(true)
    expect(verifyInclusion(leaves[0]!, 1, 0, leaves[0]!, [zero])).toBe(false)
    expect(verifyInclusion(nodeHash(leaves[0]!, zero), 1, 0, leaves[0]!, [zero])).toBe(false)
  })

  it('is refused at an index equal to the size, and in a tree of no leaves, where an empty path would fit', () => {
    expect(verifyInclusion(leaves[0]!, 1, 1, leaves[0]!, [])).toBe(false)
    expect(verifyInclusion(leaves[0]!, 0, 0, leaves[0]!, [])).toBe(false)
    expect(verifyInclusion(EMPTY_LOG_ROOT, 0, 0, EMPTY_LOG_ROOT, [])).toBe(false)
  })

  it('does not make the root its own leaf: an empty path proves nothing in a larger tree', () => {
    for (let size = 2; size < 40; size++) {
      for (let index = 0; index < size; index++) expect(verifyInclusion(root, size, index, root, [])).toBe(false)
    }
  })

  it('is refused at another index, also one past the size or none at all', () => {
    for (const index of [0, 1, 4, 6, 7, 12, 13, 5 + 16, 2 ** 40, -1, 5.5, NaN, Infinity]) {
      expect(check({ index })).toBe(false)
    }
  })

  it('is refused for a size whose tree has another shape', () => {
    for (const size of [0, 1, 4, 5, 7, 8, 17, 26, 2 ** 32, 2 ** 53, -13, 13.5, NaN, Infinity]) {
      expect(check({ size })).toBe(false)
    }
  })

  it('is refused when a node is not 32 bytes', () => {
    for (const bad of [new Uint8Array(0), new Uint8Array(31), new Uint8Array(33), new Uint8Array(64)]) {
      expect(check({ path: path.with(1, bad) })).toBe(false)
      expect(check({ leaf: bad })).toBe(false)
      expect(check({ root: bad })).toBe(false)
    }
    // Cutting 64 bytes elsewhere would hash to the same node if lengths were not checked.
    const [first = zero] = path
    const joined = new Uint8Array([...first, ...leaves[5]!])
    expect(check({ path: path.with(0, joined.slice(0, 31)), leaf: joined.slice(31) })).toBe(false)
  })

  it('is refused with any bit of any part flipped', () => {
    for (let bit = 0; bit < 256; bit++) {
      expect(check({ root: flipped(root, bit) })).toBe(false)
      expect(check({ leaf: flipped(leaves[5]!, bit) })).toBe(false)
      for (const [at, node] of path.entries()) expect(check({ path: path.with(at, flipped(node, bit)) })).toBe(false)
    }
  })

  it('is refused with its nodes reordered, against an older root, and in an empty tree', () => {
    expect(check({ path: path.toReversed() })).toBe(false)
    expect(check({ root: tree.root(12) })).toBe(false)
    expect(check({ root: EMPTY_LOG_ROOT, size: 0, index: 0, path: [] })).toBe(false)
  })

  it('of receipts in another order is another root', () => {
    expect(rootOf([leaves[1]!, leaves[0]!, ...leaves.slice(2)])).not.toEqual(root)
  })
})

describe('a consistency proof', () => {
  it('shows that the log only grew', () => {
    expect(verifyConsistency(6, 13, tree.root(6), root, tree.consistency(6))).toBe(true)
  })

  it('does not show a log that shrank', () => {
    expect(verifyConsistency(13, 6, root, tree.root(6), tree.consistency(6))).toBe(false)
    expect(verifyConsistency(13, 6, root, tree.root(6), [])).toBe(false)
    expect(verifyConsistency(1, 0, tree.root(1), EMPTY_LOG_ROOT, [])).toBe(false)
  })

  it('does not show a fork', () => {
    for (let size = 7; size <= 13; size++) {
      const fork = LogTree.from([...leaves.slice(0, 3), leafHash(Uint8Array.of(66)), ...leaves.slice(4, size)])
      expect(verifyConsistency(6, size, tree.root(6), fork.root(), fork.consistency(6))).toBe(false)
      expect(verifyConsistency(6, size, tree.root(6), fork.root(), tree.consistency(6, size))).toBe(false)
    }
    const other = LogTree.from([...leaves.slice(0, 12), leafHash(Uint8Array.of(66))])
    expect(verifyConsistency(13, 13, root, other.root(), [])).toBe(false)
    expect(verifyConsistency(13, 13, root, root, [])).toBe(true)
    expect(verifyConsistency(13, 13, root, root, [root])).toBe(false)
  })

  it('starts from an empty log only with the empty root and an empty path', () => {
    expect(verifyConsistency(0, 13, EMPTY_LOG_ROOT, root, [])).toBe(true)
    expect(verifyConsistency(0, 0, EMPTY_LOG_ROOT, EMPTY_LOG_ROOT, [])).toBe(true)
    expect(verifyConsistency(0, 0, EMPTY_LOG_ROOT, root, [])).toBe(false)
    expect(verifyConsistency(0, 13, root, root, [])).toBe(false)
    expect(verifyConsistency(0, 13, zero, root, [])).toBe(false)
    expect(verifyConsistency(0, 13, EMPTY_LOG_ROOT, root, [root])).toBe(false)
    expect(tree.consistency(0)).toEqual([])
  })

  it.each([
    [1, 13],
    [4, 13],
    [6, 13],
    [8, 13],
    [7, 12],
    [12, 13],
  ])('from %i to %i is refused with anything in it changed', (first, second) => {
    const a = tree.root(first)
    const b = tree.root(second)
    const path = tree.consistency(first, second)
    expect(verifyConsistency(first, second, a, b, path)).toBe(true)
    expect(verifyConsistency(first, second, b, a, path)).toBe(false)
    expect(verifyConsistency(first, second, a, b, [])).toBe(false)
    expect(verifyConsistency(first, second, a, b, path.slice(1))).toBe(false)
    expect(verifyConsistency(first, second, a, b, path.slice(0, -1))).toBe(false)
    for (const size of [first - 1, first + 1, first + 0.5, -first, NaN]) {
      expect(verifyConsistency(size, second, a, b, path)).toBe(false)
    }
    for (const size of [second * 2, Math.floor(second / 2), second + 0.5, 2 ** 53]) {
      expect(verifyConsistency(first, size, a, b, path)).toBe(false)
    }
    for (const extra of [a, b, zero, new Uint8Array(0)]) {
      expect(verifyConsistency(first, second, a, b, [...path, extra])).toBe(false)
      expect(verifyConsistency(first, second, a, b, [extra, ...path])).toBe(false)
    }
    for (const [at, node] of path.entries()) {
      expect(verifyConsistency(first, second, a, b, path.with(at, flipped(node, 4)))).toBe(false)
      expect(verifyConsistency(first, second, a, b, path.with(at, node.slice(1)))).toBe(false)
    }
    expect(verifyConsistency(first, second, flipped(a, 0), b, path)).toBe(false)
    expect(verifyConsistency(first, second, a, flipped(b, 0), path)).toBe(false)
  })
})

describe('a committed root', () => {
  it('binds the size, which an inclusion proof does not', () => {
    // The same proof of the same leaf under the same root passes for two sizes.
    const path = tree.inclusion(0, 13)
    expect(verifyInclusion(root, 13, 0, leaves[0]!, path)).toBe(true)
    expect(verifyInclusion(root, 14, 0, leaves[0]!, path)).toBe(true)
    expect(committedRoot(root, 13)).not.toEqual(committedRoot(root, 14))
  })

  it('is the tagged hash of the size in eight bytes and the root', () => {
    expect(committedRoot(root, 0x1_0000_0002)).toEqual(
      taggedHash('sion/log/v1', Uint8Array.of(0, 0, 0, 1, 0, 0, 0, 2), root),
    )
  })

  it('is of nothing but a root and a size', () => {
    expect(() => committedRoot(root.slice(1), 1)).toThrow('root: expected 32 bytes, not 31')
    for (const size of [-1, 1.5, NaN, 2 ** 53]) expect(() => committedRoot(root, size)).toThrow(InputError)
  })
})

describe('the log tree as a program uses it', () => {
  it('refuses what is not in it, by name', () => {
    expect(() => tree.inclusion(13)).toThrow('index: expected a whole number from 0 to 12, not 13')
    expect(() => tree.inclusion(0, 14)).toThrow('size: expected a whole number from 0 to 13, not 14')
    expect(() => tree.inclusion(0, 0)).toThrow(InputError)
    expect(() => new LogTree().inclusion(0)).toThrow(InputError)
    expect(() => tree.root(14)).toThrow(InputError)
    expect(() => tree.consistency(9, 8)).toThrow('first: expected a whole number from 0 to 8, not 9')
    expect(() => tree.truncate(14)).toThrow(InputError)
    expect(() => new LogTree().append(new Uint8Array(31))).toThrow('leaf: expected 32 bytes, not 31')
    expect(() => levelsOf(new Uint8Array(33))).toThrow('leaves: expected a multiple of 32 bytes, not 33')
  })

  it('gives out copies: writing to a root or path does not reach the tree', () => {
    const own = LogTree.from(leaves.slice(0, 8))
    const before = toHex(own.root())
    own.root().fill(0)
    own.root(4).fill(0)
    for (const node of own.inclusion(3)) node.fill(0)
    expect(toHex(own.root())).toBe(before)
    expect(own.inclusion(3).map(toHex)).toEqual(LogTree.from(leaves.slice(0, 8)).inclusion(3).map(toHex))
  })

  it('has the root SHA-256 of nothing when it is empty', () => {
    expect(new LogTree().root()).toEqual(sha256(new Uint8Array(0)))
    expect(levelsOf(new Uint8Array(0)).root).toEqual(EMPTY_LOG_ROOT)
  })
})

describe('a path as JSON', () => {
  it('comes back as it went', () => {
    const path = tree.inclusion(5)
    expect(decodePath(JSON.parse(JSON.stringify(encodePath(path))), 'path')).toEqual(path)
  })

  it.each([
    [undefined, 'path: expected an array of hashes, not nothing'],
    [{ length: 1 }, 'path: expected an array of hashes, not an object'],
    [['00'], 'path[0]: expected 64 hex digits, not 2'],
    [[toHex(root), 'A'.repeat(64)], 'path[1]: expected lower-case hex digits only'],
    [[null], 'path[0]: expected hex text, not null'],
    [Array.from({ length: 55 }, () => toHex(root)), 'path: a path has at most 54 hashes, not 55'],
  ])('is refused with what is wrong: %#', (value, message) => {
    expect(() => decodePath(value, 'path')).toThrow(new InputError(message.split(': ')[0]!, message.slice(message.indexOf(': ') + 2)))
  })
})
