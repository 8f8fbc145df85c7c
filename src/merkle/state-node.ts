import type { Id } from '../codec/hex.js'
import { sha256 } from '../crypto/hash.js'
import { HASH_LENGTH, type Hash } from './hash32.js'

/**
 * The nodes of the state tree, docs/protocol.md §4. They link to each other as objects and never change, so versions
 * of the tree share what they have in common and the garbage collector drops what no version holds any more.
 */

/** One object: its id and the hash of its bytes. Stands as high as no other id shares its path. */
export interface StateLeaf {
  readonly kind: 'leaf'
  readonly id: Id
  readonly valueHash: Hash
  readonly hash: Hash
}

/** At least two objects. A side may be empty only where the other is not a single leaf. */
export interface StateBranch {
  readonly kind: 'branch'
  readonly left: StateNode
  readonly right: StateNode
  readonly hash: Hash
}

/** A subtree known by its hash alone: what a witness leaves out. */
export interface StateStub {
  readonly kind: 'stub'
  readonly hash: Hash
}

/** A subtree; undefined is the empty one. */
export type StateNode = StateLeaf | StateBranch | StateStub | undefined

/** The hash of a subtree without objects: 32 zero bytes, which no SHA-256 anyone can find comes out as. */
export const EMPTY_STATE_ROOT: Hash = new Uint8Array(HASH_LENGTH)

/** Ids are as long as the deepest leaf can be: two that differ in the last bit only. */
export const MAX_DEPTH = 256

/** The bit of an id that decides the branch at `depth`: 0 is left. From the most significant. */
export function bitAt(id: Id, depth: number): 0 | 1 {
  return (nibbleAt(id, depth >> 2) >> (3 - (depth & 3))) & 1 ? 1 : 0
}

/** How many leading bits two different ids share. */
export function sharedBits(a: Id, b: Id): number {
  let digit = 0
  while (digit < a.length && a.charCodeAt(digit) === b.charCodeAt(digit)) digit++
  return digit * 4 + Math.clz32(nibbleAt(a, digit) ^ nibbleAt(b, digit)) - 28
}

export function hashOf(node: StateNode): Hash {
  return node === undefined ? EMPTY_STATE_ROOT : node.hash
}

// Trees are hashing and little else: each message is laid out once, with its tag's prefix, and filled in place.
// The tests hold both to `taggedHash`.
const leafMessage = messageOf('sion/state-leaf/v1')
const branchMessage = messageOf('sion/state-node/v1')

/** `H("sion/state-leaf/v1", id ‖ valueHash)`. */
export function stateLeafHash(id: Id, valueHash: Hash): Hash {
  const { bytes, start } = leafMessage
  for (let i = 0; i < HASH_LENGTH; i++) bytes[start + i] = (nibbleAt(id, 2 * i) << 4) | nibbleAt(id, 2 * i + 1)
  bytes.set(valueHash, start + HASH_LENGTH)
  return sha256(bytes)
}

/** `H("sion/state-node/v1", left ‖ right)`. */
export function stateBranchHash(left: Hash, right: Hash): Hash {
  const { bytes, start } = branchMessage
  bytes.set(left, start)
  bytes.set(right, start + HASH_LENGTH)
  return sha256(bytes)
}

export function leafOf(id: Id, valueHash: Hash): StateLeaf {
  return { kind: 'leaf', id, valueHash, hash: stateLeafHash(id, valueHash) }
}

export function branchOf(left: StateNode, right: StateNode): StateBranch {
  return { kind: 'branch', left, right, hash: stateBranchHash(hashOf(left), hashOf(right)) }
}

/** The message H(tag, a ‖ b) hashes for two parts of 32 bytes, and where the parts start. */
function messageOf(tag: string): { bytes: Uint8Array; start: number } {
  const ascii = new TextEncoder().encode(tag)
  const start = 1 + ascii.length
  const bytes = new Uint8Array(start + 2 * HASH_LENGTH)
  bytes[0] = ascii.length
  bytes.set(ascii, 1)
  return { bytes, start }
}

function nibbleAt(id: Id, digit: number): number {
  const code = id.charCodeAt(digit)
  return code < 58 ? code - 48 : code - 87
}
