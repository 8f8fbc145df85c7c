import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { appendLeaf, frontierRoot, leafHash, LogTree, peakCount, type LogFrontier } from '../../src/merkle/index.js'

describe('the frontier of a log', () => {
  it('has the root of the whole tree at every size', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 8 }), { maxLength: 70 }), (entries) => {
        const tree = new LogTree()
        let frontier: LogFrontier = { size: 0, peaks: [] }
        expect(frontierRoot(frontier)).toEqual(tree.root())
        for (const entry of entries) {
          tree.append(leafHash(entry))
          frontier = appendLeaf(frontier, leafHash(entry))
          expect(frontierRoot(frontier)).toEqual(tree.root())
          expect([frontier.size, frontier.peaks.length]).toEqual([tree.size, peakCount(tree.size)])
        }
      }),
    )
  })

  it('leaves the frontier that it grew from as it was', () => {
    const one = appendLeaf({ size: 0, peaks: [] }, leafHash(new Uint8Array([1])))
    const before = frontierRoot(one)
    appendLeaf(one, leafHash(new Uint8Array([2])))
    expect([one.size, frontierRoot(one)]).toEqual([1, before])
  })

  it('refuses a leaf that is no hash, and peaks that do not fit the size', () => {
    expect(() => appendLeaf({ size: 0, peaks: [] }, new Uint8Array(31))).toThrow('expected 32 bytes, not 31')
    expect(() => appendLeaf({ size: 3, peaks: [leafHash(new Uint8Array())] }, leafHash(new Uint8Array()))).toThrow('1 peaks for a log of 3')
  })
})
