import { InputError } from '../codec/errors.js'
import { fromHex, toHex } from '../codec/hex.js'
import { HASH_LENGTH, sameHash, type Hash } from './hash32.js'
import { bitAt, branchOf, EMPTY_STATE_ROOT, leafOf, MAX_DEPTH, type StateNode } from './state-node.js'

/**
 * The bytes of a witness: the part of a state tree that some work opened, from the top down, left before right.
 *
 * ```
 * node = 0                                empty
 *      | 1 ‖ hash 32                      not opened
 *      | 2 ‖ id 32 ‖ value hash 32        leaf
 *      | 3 ‖ node ‖ node                  branch
 * ```
 *
 * Hashes of what was opened are not in it: the reader computes them. One partial tree has exactly one encoding.
 */
const EMPTY = 0
const STUB = 1
const LEAF = 2
const BRANCH = 3

export function encodeWitness(top: StateNode, opened: ReadonlySet<StateNode>): Uint8Array {
  const bytes = new Uint8Array(lengthOf(top, opened))
  write(top, opened, bytes, 0)
  return bytes
}

/** @throws InputError naming `field` for anything that {@link encodeWitness} would not write. */
export function decodeWitness(bytes: Uint8Array, field: string): StateNode {
  const reader = new Reader(bytes, field)
  const top = reader.node()
  if (reader.at !== bytes.length) throw new InputError(field, `${bytes.length - reader.at} bytes after the witness`)
  return top
}

function lengthOf(node: StateNode, opened: ReadonlySet<StateNode>): number {
  if (node === undefined) return 1
  if (node.kind === 'stub' || !opened.has(node)) return 1 + HASH_LENGTH
  if (node.kind === 'leaf') return 1 + 2 * HASH_LENGTH
  return 1 + lengthOf(node.left, opened) + lengthOf(node.right, opened)
}

/** Writes `node` at `at` and returns where it ends. */
function write(node: StateNode, opened: ReadonlySet<StateNode>, bytes: Uint8Array, at: number): number {
  if (node === undefined) {
    bytes[at] = EMPTY
    return at + 1
  }
  if (node.kind === 'stub' || !opened.has(node)) {
    bytes[at] = STUB
    bytes.set(node.hash, at + 1)
    return at + 1 + HASH_LENGTH
  }
  if (node.kind === 'leaf') {
    bytes[at] = LEAF
    bytes.set(fromHex(node.id, 'id', HASH_LENGTH), at + 1)
    bytes.set(node.valueHash, at + 1 + HASH_LENGTH)
    return at + 1 + 2 * HASH_LENGTH
  }
  bytes[at] = BRANCH
  return write(node.right, opened, bytes, write(node.left, opened, bytes, at + 1))
}

class Reader {
  at = 0
  /** The bits from the top to the node being read: a leaf must lie on them, and they cannot go on for ever. */
  private readonly path: (0 | 1)[] = []

  constructor(
    private readonly bytes: Uint8Array,
    private readonly field: string,
  ) {}

  node(): StateNode {
    const start = this.at
    const [kind] = this.take(1)
    if (kind === EMPTY) return undefined
    if (kind === STUB) return this.stub(start)
    if (kind === LEAF) return this.leaf(start)
    if (kind === BRANCH) return this.branch(start)
    throw this.wrong(start, `unknown node kind ${kind}`)
  }

  private stub(start: number): StateNode {
    const hash = this.take(HASH_LENGTH)
    if (sameHash(hash, EMPTY_STATE_ROOT)) throw this.wrong(start, 'an empty subtree written as a hash')
    return { kind: 'stub', hash }
  }

  private leaf(start: number): StateNode {
    const id = toHex(this.take(HASH_LENGTH))
    const off = this.path.findIndex((bit, depth) => bitAt(id, depth) !== bit)
    if (off >= 0) throw this.wrong(start, `a leaf that leaves its path at bit ${off}`)
    return leafOf(id, this.take(HASH_LENGTH))
  }

  private branch(start: number): StateNode {
    if (this.path.length === MAX_DEPTH) throw this.wrong(start, `a branch below depth ${MAX_DEPTH}`)
    const left = this.child(0)
    const right = this.child(1)
    const only = left ?? right
    if (only === undefined || (only.kind === 'leaf' && (left === undefined || right === undefined))) {
      throw this.wrong(start, 'a branch over fewer than two leaves')
    }
    return branchOf(left, right)
  }

  private child(bit: 0 | 1): StateNode {
    this.path.push(bit)
    const node = this.node()
    this.path.pop()
    return node
  }

  private take(length: number): Hash {
    const end = this.at + length
    if (end > this.bytes.length) throw this.wrong(this.at, `${length} bytes expected, ${this.bytes.length - this.at} left`)
    // Not `slice`: of a Buffer that is a view, and would keep the whole witness alive.
    const part = new Uint8Array(this.bytes.subarray(this.at, end))
    this.at = end
    return part
  }

  private wrong(at: number, problem: string): InputError {
    return new InputError(this.field, `byte ${at}: ${problem}`)
  }
}
