import { InputError } from '../codec/errors.js'
import { sha256, taggedHash } from '../crypto/hash.js'
import { HASH_LENGTH, requireHash, type Hash } from './hash32.js'

/**
 * The append-only log tree of RFC 9162 §2.1 (the same hashes as RFC 6962): receipts of a Pulse, the knowledge log,
 * checkpoints of a stream.
 *
 * Leaf and node are plain SHA-256 after one byte 0x00 or 0x01, not our tagged hashes, so that every root is byte for
 * byte the RFC's and can be checked with its vectors and with other people's verifiers. The two bytes keep leaves and
 * nodes apart, and both apart from every tagged hash, which begins with the length of its tag: ours are all longer.
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
  return taggedHash('sion/log/v1', bytes, requireHash(root, 'root'))
}

/** A fixed list of leaves with its root and paths. */
export interface MerkleLevels {
  readonly root: Hash
  /** @throws InputError for an index that is not in the list. */
  path(index: number): Hash[]
}

/**
 * Root and inclusion paths of `leaves`, hashed leaves one after the other (n × 32 bytes). Costs n − 1 hashes and twice
 * that memory, without an object for each leaf; a path then costs next to nothing.
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

  /** Of hashed leaves one after the other, n × 32 bytes, which are copied. */
  static fromBytes(leaves: Uint8Array): LogTree {
    if (leaves.length % HASH_LENGTH !== 0) {
      throw new InputError('leaves', `expected a multiple of 32 bytes, not ${leaves.length}`)
    }
    const tree = new LogTree()
    let level: Level = { bytes: new Uint8Array(leaves), count: leaves.length / HASH_LENGTH }
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
    let node = requireHash(leaf, 'leaf')
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

function nodeIn(level: Level, at: number): Hash {
  return level.bytes.subarray(at * HASH_LENGTH, (at + 1) * HASH_LENGTH)
}

function push(level: Level, node: Hash): void {
  const end = level.count * HASH_LENGTH
  if (end === level.bytes.length) {
    const grown = new Uint8Array(Math.max(4 * HASH_LENGTH, 2 * end))
    grown.set(level.bytes)
    level.bytes = grown
  }
  level.bytes.set(node, end)
  level.count++
}

function parentsOf(level: Level): Level {
  const count = Math.floor(level.count / 2)
  const bytes = new Uint8Array(count * HASH_LENGTH)
  for (let at = 0; at < count; at++) {
    // Two siblings stand side by side: one copy for both.
    pair.set(level.bytes.subarray(2 * at * HASH_LENGTH, (2 * at + 2) * HASH_LENGTH), 1)
    bytes.set(sha256(pair), at * HASH_LENGTH)
  }
  return { bytes, count }
}

function wholeNumber(value: number, field: string, most: number): number {
  if (Number.isSafeInteger(value) && value >= 0 && value <= most) return value
  throw new InputError(field, `expected a whole number from 0 to ${most}, not ${value}`)
}
