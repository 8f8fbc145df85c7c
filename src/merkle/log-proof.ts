import { InputError } from '../codec/errors.js'
import { describe, fromHex, toHex } from '../codec/hex.js'
import { HASH_LENGTH, isHash, sameHash, type Hash } from './hash32.js'
import { EMPTY_LOG_ROOT, nodeHash } from './log-tree.js'

/**
 * Whether `leaf`, a leaf hash, is at `index` in the tree of `size` leaves under `root` (RFC 9162 §2.1.3.2). Index and
 * size alone say how many siblings the path has and on which side each stands. The caller hashes the leaf from its entry,
 * and has `size` from whoever vouches for `root`: taken from the prover, together they let an inner node pass as a leaf.
 * Anything malformed is false; nothing throws.
 */
export function verifyInclusion(
  root: Hash,
  size: number,
  index: number,
  leaf: Hash,
  path: readonly Uint8Array[],
): boolean {
  if (!isSize(size) || !isSize(index) || index >= size) return false
  if (!isHash(root) || !isHash(leaf) || !isPath(path)) return false
  let node = leaf
  let at = index
  let last = size - 1
  let used = 0
  for (; last > 0; at = Math.floor(at / 2), last = Math.floor(last / 2)) {
    // The last node of an odd row has no sibling: it moves up as it is.
    if (at % 2 === 0 && at === last) continue
    const sibling = path[used++]
    if (sibling === undefined) return false
    node = at % 2 === 1 ? nodeHash(sibling, node) : nodeHash(node, sibling)
  }
  return used === path.length && sameHash(node, root)
}

/**
 * Whether the tree of `second` leaves begins with all that the tree of `first` leaves held (RFC 9162 §2.1.4.2): the log
 * only grew. Beyond the RFC, an empty first tree is consistent with everything, if its root is the empty root. Anything
 * malformed is false; nothing throws.
 */
export function verifyConsistency(
  first: number,
  second: number,
  firstRoot: Hash,
  secondRoot: Hash,
  path: readonly Uint8Array[],
): boolean {
  if (!isSize(first) || !isSize(second) || first > second) return false
  if (!isHash(firstRoot) || !isHash(secondRoot) || !isPath(path)) return false
  if (first === 0 && !sameHash(firstRoot, EMPTY_LOG_ROOT)) return false
  if (first === second) return path.length === 0 && sameHash(firstRoot, secondRoot)
  if (first === 0) return path.length === 0

  let at = first - 1
  let last = second - 1
  for (; at % 2 === 1; at = Math.floor(at / 2)) last = Math.floor(last / 2)
  let used = 0
  const start = at === 0 ? firstRoot : path[used++]
  if (start === undefined) return false
  let inFirst = start
  let inSecond = start
  for (; last > 0; at = Math.floor(at / 2), last = Math.floor(last / 2)) {
    if (at % 2 === 0 && at === last) continue
    const sibling = path[used++]
    if (sibling === undefined) return false
    if (at % 2 === 1) {
      inFirst = nodeHash(sibling, inFirst)
      inSecond = nodeHash(sibling, inSecond)
    } else {
      inSecond = nodeHash(inSecond, sibling)
    }
  }
  return used === path.length && sameHash(inFirst, firstRoot) && sameHash(inSecond, secondRoot)
}

/** No tree of at most 2^53 leaves has a longer path of either kind. */
const MAX_PATH = 54

/** A path as JSON: one hex text a node. */
export function encodePath(path: readonly Hash[]): string[] {
  return path.map(toHex)
}

/** @throws InputError naming `field`: not an array, too long, or a node that is not 64 lower-case hex digits. */
export function decodePath(value: unknown, field: string): Hash[] {
  if (!Array.isArray(value)) throw new InputError(field, `expected an array of hashes, not ${describe(value)}`)
  if (value.length > MAX_PATH) throw new InputError(field, `a path has at most ${MAX_PATH} hashes, not ${value.length}`)
  return value.map((node: unknown, at) => fromHex(node, `${field}[${at}]`, HASH_LENGTH))
}

function isSize(value: unknown): value is number {
  return Number.isSafeInteger(value) && typeof value === 'number' && value >= 0
}

function isPath(value: unknown): value is readonly Hash[] {
  return Array.isArray(value) && value.length <= MAX_PATH && value.every(isHash)
}
