import { InputError } from '../codec/errors.js'
import { describe } from '../codec/hex.js'
import { sha256, taggedHash } from '../crypto/hash.js'
import { HASH_LENGTH, isHash, type Hash } from './hash32.js'

/**
 * The append-only log tree of RFC 9162 §2.1 (the same hashes as RFC 6962): receipts of a Pulse, the knowledge log,
 * checkpoints of a stream.
 *
 * Leaf and node are plain SHA-256 after one byte 0x00 or 0x01, not our tagged hashes, so that every root is byte for
 * byte the RFC's and can be checked with its vectors and with other people's verifiers. The two bytes keep leaves and
 * nodes apart; no tagged hash collides with either, because a tag is never 0 or 1 characters long.
 */

/** RFC 9162 §2.1.1: SHA-256(0x00 ‖ entry). */
export function leafHash(entry: Uint8Array): Hash {
  const message = new Uint8Array(1 + entry.length)
  message.set(entry, 1)
  return sha256(message)
}

const pair = new Uint8Array(1 + 2 * HASH_LENGTH)
pair[0] = 1

/** RFC 9162 §2.1.1: SHA-256(0x01 ‖ left ‖ right). */
export function nodeHash(left: Hash, right: Hash): Hash {
  pair.set(left, 1)
  pair.set(right, 1 + HASH_LENGTH)
  return sha256(pair)
}

/** The root of a tree without leaves, RFC 9162 §2.1.1: SHA-256 of nothing. */
export const EMPTY_LOG_ROOT: Hash = sha256(new Uint8Array(0))

/** Root over hashed leaves. Whoever also needs paths builds a {@link LogTree} once. */
export function rootOf(leafHashes: readonly Hash[]): Hash {
  return LogTree.from(leafHashes).root()
}

/** Inclusion path of one leaf, deepest sibling first. For many leaves of one tree, use {@link LogTree}. */
export function inclusionPath(leafHashes: readonly Hash[], index: number): Hash[] {
  return LogTree.from(leafHashes).inclusion(index)
}

/** Consistency path from the first `first` leaves to all of them. For many, use {@link LogTree}. */
export function consistencyPath(leafHashes: readonly Hash[], first: number): Hash[] {
  return LogTree.from(leafHashes).consistency(first)
}

/**
 * What to sign or store where a size is not signed beside its root: `H("sion/log/v1", u64be(size) ‖ root)`. A root
 * alone does not fix the size, and an inclusion proof believes whatever size it is given.
 * @throws InputError for a root that is not 32 bytes or a size that is not a whole number.
 */
export function committedRoot(root: Hash, size: number): Hash {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(wholeNumber(size, 'size', Number.MAX_SAFE_INTEGER)))
  return taggedHash('sion/log/v1', bytes, hash32(root, 'root'))
}

/** A fixed list of leaves with its root and paths. */
export interface MerkleLevels {
  readonly root: Hash
  /** @throws InputError for an index that is not in the list. */
  path(index: number): Hash[]
}

/**
 * Root and inclusion paths of `leaves`, hashed leaves one after the other (n × 32 bytes), which are kept and must not
 * change. Takes as much memory again and n − 1 hashes; a path then costs next to nothing.
 * @throws InputError unless the length is a multiple of 32.
 */
export function levelsOf(leaves: Uint8Array): MerkleLevels {
  const tree = LogTree.fromBytes(leaves)
  return { root: tree.root(), path: (index) => tree.inclusion(index) }
}

/** Complete subtrees of one height, left to right, in one array with room to grow. */
interface Level {
  bytes: Uint8Array
  count: number
}

/**
 * A growing log. Keeps every complete subtree, so appending costs one hash on average, and a root or a path of any
 * size up to the present O(log n). Paths run from the leaf upwards, as in RFC 9162.
 */
export class LogTree {
  readonly #levels: Level[] = [{ bytes: new Uint8Array(0), count: 0 }]

  static from(leaves: Iterable<Hash>): LogTree {
    const tree = new LogTree()
    for (const leaf of leaves) tree.append(leaf)
    return tree
  }

  /** Of n × 32 bytes of hashed leaves, which are kept without a copy and must not change. */
  static fromBytes(leaves: Uint8Array): LogTree {
    if (leaves.length % HASH_LENGTH !== 0) {
      throw new InputError('leaves', `expected a multiple of 32 bytes, not ${leaves.length}`)
    }
    const tree = new LogTree()
    let level: Level = { bytes: leaves, count: leaves.length / HASH_LENGTH }
    tree.#levels[0] = level
    while (level.count > 1) {
      level = parentsOf(level)
      tree.#levels.push(level)
    }
    return tree
  }

  /** Number of leaves. */
  get size(): number {
    return this.#levels[0]!.count
  }

  /** Adds a hashed leaf; the bytes are copied. */
  append(leaf: Hash): void {
    let node = hash32(leaf, 'leaf')
    for (let height = 0; ; height++) {
      let level = this.#levels[height]
      if (level === undefined) this.#levels.push((level = { bytes: new Uint8Array(0), count: 0 }))
      push(level, node)
      if (level.count % 2 === 1) return
      node = nodeHash(nodeIn(level, level.count - 2), node)
    }
  }

  /** Forgets every leaf from `size` on: for a Pulse that was executed and then not certified. */
  truncate(size: number): void {
    let count = wholeNumber(size, 'size', this.size)
    for (const level of this.#levels) {
      level.count = count
      count = Math.floor(count / 2)
    }
  }

  /** Root of the first `size` leaves, by default of all. */
  root(size = this.size): Hash {
    wholeNumber(size, 'size', this.size)
    return size === 0 ? EMPTY_LOG_ROOT : this.#subtree(0, size)
  }

  /** Inclusion path of the leaf at `index` in the tree of the first `size` leaves (RFC 9162 §2.1.3). */
  inclusion(index: number, size = this.size): Hash[] {
    wholeNumber(size, 'size', this.size)
    wholeNumber(index, 'index', size - 1)
    const path: Hash[] = []
    let at = index
    let last = size - 1
    for (let height = 0; last > 0; height++) {
      if (at % 2 === 1) path.push(this.#node(height, at - 1, size))
      else if (at < last) path.push(this.#node(height, at + 1, size))
      at = Math.floor(at / 2)
      last = Math.floor(last / 2)
    }
    return path
  }

  /** Consistency path between the trees of the first `first` and `second` leaves (RFC 9162 §2.1.4). */
  consistency(first: number, second = this.size): Hash[] {
    wholeNumber(second, 'second', this.size)
    wholeNumber(first, 'first', second)
    const path: Hash[] = []
    if (first === 0 || first === second) return path
    let at = first - 1
    let last = second - 1
    let height = 0
    // Up to the largest complete subtree that ends where the first tree ends: both trees contain it.
    for (; at % 2 === 1; height++) {
      at = Math.floor(at / 2)
      last = Math.floor(last / 2)
    }
    // Alone in the first tree it is that tree's root, which the verifier has.
    if (at > 0) path.push(this.#node(height, at, second))
    for (; last > 0; height++) {
      if (at % 2 === 1) path.push(this.#node(height, at - 1, second))
      else if (at < last) path.push(this.#node(height, at + 1, second))
      at = Math.floor(at / 2)
      last = Math.floor(last / 2)
    }
    return path
  }

  /** The node `at` of a height in the tree of `size` leaves; the last one may cover less than a complete subtree. */
  #node(height: number, at: number, size: number): Hash {
    const width = 2 ** height
    if ((at + 1) * width <= size) return nodeIn(this.#levels[height]!, at).slice()
    return this.#subtree(at * width, size)
  }

  /** Root over the leaves from `start` to `end`, folded from the smallest complete subtree on the right leftwards. */
  #subtree(start: number, end: number): Hash {
    let root: Hash | undefined
    let rest = end - start
    for (let height = 0; rest > 0; height++) {
      const width = 2 ** height
      if (Math.floor(rest / width) % 2 === 0) continue
      rest -= width
      const peak = nodeIn(this.#levels[height]!, (start + rest) / width)
      root = root === undefined ? peak.slice() : nodeHash(peak, root)
    }
    return root ?? EMPTY_LOG_ROOT
  }
}

/**
 * Whether `leaf`, a leaf hash, is at `index` in the tree of `size` leaves under `root` (RFC 9162 §2.1.3.2). Index and
 * size alone say how many siblings the path has and on which side each stands. `size` must come from whoever vouches for
 * `root`, never from the prover. Anything malformed is false; nothing throws.
 */
export function verifyInclusion(
  root: Hash,
  size: number,
  index: number,
  leaf: Hash,
  path: readonly Uint8Array[],
): boolean {
  if (!isIndex(index, size) || !isHash(root) || !isHash(leaf) || !isPath(path)) return false
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
  return used === path.length && equal(node, root)
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
  if (first === 0 && !equal(firstRoot, EMPTY_LOG_ROOT)) return false
  if (first === second) return path.length === 0 && equal(firstRoot, secondRoot)
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
  return used === path.length && equal(inFirst, firstRoot) && equal(inSecond, secondRoot)
}
