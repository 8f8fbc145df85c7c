import { CHECKPOINT_EVERY, checkpointCount, checkpointEntry, createWalker, MAX_POSITION } from '../../src/crypto/chain-step.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { leafHash, nodeHash } from '../../src/merkle/index.js'

/**
 * The top of the longest chain there can be, without its four thousand million elements: the last element, and a root
 * under which the checkpoint below it is proven by a path of made-up siblings.
 */

export const lastPosition = MAX_POSITION

const salt = taggedHash('test/longest/salt').slice(0, 16)
const element = taggedHash('test/longest/top')
const index = checkpointCount(lastPosition)
const checkpoint = createWalker(salt).down(element, lastPosition, index * CHECKPOINT_EVERY)

/** RFC 9162 §2.1.3.2 read backwards: siblings as they are needed, from the leaf up to a root. */
function rootOver(leaf: Uint8Array, at: number, size: number): { root: Uint8Array; path: Uint8Array[] } {
  const path: Uint8Array[] = []
  let node = leaf
  for (let last = size - 1; last > 0; at = Math.floor(at / 2), last = Math.floor(last / 2)) {
    if (at % 2 === 0 && at === last) continue
    const sibling = taggedHash('test/longest/sibling', Uint8Array.of(path.length))
    path.push(sibling)
    node = at % 2 === 1 ? nodeHash(sibling, node) : nodeHash(node, sibling)
  }
  return { root: node, path }
}

const { root, path } = rootOver(leafHash(checkpointEntry(index, checkpoint)), index - 1, index)

export const longestChain = { salt, element, root, jump: { index, path } }
