import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { fromHex, toHex } from '../../src/codec/index.js'
import { leafHash, levelsOf, LogTree, nodeHash, rootOf, verifyConsistency, verifyInclusion } from '../../src/merkle/index.js'

interface Vectors {
  entries: string[]
  nodes: string[][]
  rootsBySize: string[]
  inclusion: { index: number; size: number; path: string[] }[]
  consistency: { first: number; second: number; path: string[] }[]
}

const vectors: Vectors = JSON.parse(
  readFileSync(new URL('../vectors/rfc6962-log-tree.json', import.meta.url), 'utf8'),
) as Vectors
const leaves = vectors.entries.map((entry) => leafHash(fromHex(entry, 'entry')))
const hashes = (texts: string[]): Uint8Array[] => texts.map((text) => fromHex(text, 'hash', 32))
const root = (size: number): Uint8Array => fromHex(vectors.rootsBySize[size], 'root', 32)

describe('the RFC 6962 vectors of transparency-dev/merkle', () => {
  it('are all here', () => {
    expect(vectors.entries).toHaveLength(8)
    expect(vectors.nodes.map((row) => row.length)).toEqual([8, 4, 2, 1])
    expect(vectors.rootsBySize).toHaveLength(9)
    expect(vectors.inclusion).toHaveLength(5)
    expect(vectors.consistency).toHaveLength(5)
  })

  it('give our leaf and node hashes', () => {
    expect(leaves.map(toHex)).toEqual(vectors.nodes[0])
    for (const [height, row] of vectors.nodes.entries()) {
      const below = hashes(vectors.nodes[height - 1] ?? [])
      if (height > 0) expect(row.map((_, at) => toHex(nodeHash(below[2 * at]!, below[2 * at + 1]!)))).toEqual(row)
    }
  })

  it('give our root at every size, however the tree is built', () => {
    const grown = new LogTree()
    const full = LogTree.from(leaves)
    for (let size = 0; size <= 8; size++) {
      const expected = vectors.rootsBySize[size]
      expect(toHex(grown.root())).toBe(expected)
      expect(toHex(full.root(size))).toBe(expected)
      expect(toHex(rootOf(leaves.slice(0, size)))).toBe(expected)
      expect(toHex(levelsOf(Buffer.concat(leaves.slice(0, size))).root)).toBe(expected)
      if (size < 8) grown.append(leaves[size]!)
    }
  })

  it.each(vectors.inclusion)('give our inclusion path of leaf $index in $size, which verifies', ({ index, size, path }) => {
    expect(LogTree.from(leaves).inclusion(index, size).map(toHex)).toEqual(path)
    expect(verifyInclusion(root(size), size, index, leaves[index]!, hashes(path))).toBe(true)
  })

  it.each(vectors.consistency)('give our consistency path from $first to $second, which verifies', (vector) => {
    const { first, second, path } = vector
    expect(LogTree.from(leaves).consistency(first, second).map(toHex)).toEqual(path)
    expect(verifyConsistency(first, second, root(first), root(second), hashes(path))).toBe(true)
  })
})
