import { SionError } from '../codec/errors.js'
import { parseId, toHex, type Id } from '../codec/hex.js'
import { requireHash, sameHash, type Hash } from './hash32.js'
import { bitAt, branchOf, hashOf, leafOf, type StateLeaf, type StateNode } from './state-node.js'
import type { StateProof } from './state-proof.js'
import { decodeWitness, encodeWitness } from './state-witness.js'

/** What a change sets an id to: the hash of its object's bytes, or null to delete the object. */
export type StateChanges = ReadonlyMap<Id, Hash | null>

/** A tree that notes what is read of it, and what it noted so far. */
export interface TracedState {
  readonly tree: StateTree
  /** The witness for everything done to `tree` and to the trees that came of it by updates. */
  witness(): Uint8Array
}

/**
 * The state as one value: a path-compressed sparse Merkle tree from ids to the hashes of objects, docs/protocol.md §4.
 * It never changes; an update makes another tree that shares all it did not touch, so a node keeps as many versions as
 * it likes by holding them. The root depends on the present objects alone, not on how they came to be there.
 *
 * A tree may know parts of itself by hash alone ({@link StateTree.fromWitness}). Whatever needs such a part throws
 * `missing_witness`; everything else works as on the whole tree.
 */
export class StateTree {
  static readonly empty = new StateTree(undefined, undefined)

  readonly #top: StateNode
  readonly #trace: Set<StateNode> | undefined

  private constructor(top: StateNode, trace: Set<StateNode> | undefined) {
    this.#top = top
    this.#trace = trace
  }

  /**
   * The tree of a witness. Its root is computed, not claimed: compare it with the certified one.
   * @throws InputError naming `field` for bytes that are not exactly one witness.
   */
  static fromWitness(bytes: Uint8Array, field: string): StateTree {
    return new StateTree(decodeWitness(bytes, field), undefined)
  }

  /** 32 bytes; zero for an empty tree. */
  get root(): Hash {
    return hashOf(this.#top)
  }

  /** The hash of the object `id`, or undefined where there is none. */
  get(id: Id): Hash | undefined {
    const end = this.#walk(parseId(id, 'id'))
    return end !== undefined && end.id === id ? end.valueHash : undefined
  }

  /** A proof that `id` has its present object, or that it has none: `verifyState` checks it against the root. */
  prove(id: Id): StateProof {
    const siblings: Hash[] = []
    const end = this.#walk(parseId(id, 'id'), siblings)
    siblings.reverse()
    return end === undefined || end.id === id ? { siblings } : { siblings, leaf: { id: end.id, valueHash: end.valueHash } }
  }

  /**
   * The tree after all `changes` at once; each touched node is hashed once. Deleting what is not there, or setting what
   * is there already, changes nothing; if nothing changed the answer is this tree.
   * @throws InputError for a key that is no id or a hash that is not 32 bytes.
   */
  update(changes: StateChanges): StateTree {
    const sorted = Array.from(changes, ([id, valueHash]) => ({
      id: parseId(id, 'id'),
      // A copy, because a view would keep the whole buffer behind it alive.
      valueHash: valueHash === null ? null : new Uint8Array(requireHash(valueHash, 'valueHash')),
    }))
    // As texts ids sort as their bits do, so every subtree's changes stand together.
    sorted.sort((a, b) => (a.id < b.id ? -1 : 1))
    const top = new Update(sorted, this.#trace).apply(this.#top, 0, sorted.length, 0)
    return top === this.#top ? this : new StateTree(top, this.#trace)
  }

  /** The same tree, noting every node that is opened: what a verifier needs to repeat the work without the state. */
  traced(): TracedState {
    const opened = new Set<StateNode>()
    const top = this.#top
    return { tree: new StateTree(top, opened), witness: () => encodeWitness(top, opened) }
  }

  /** Down to the leaf where the path of `id` ends, if it does not end in an empty place. */
  #walk(id: Id, siblings?: Hash[]): StateLeaf | undefined {
    let node = this.#top
    for (let depth = 0; ; depth++) {
      if (node === undefined) return undefined
      this.#trace?.add(node)
      if (node.kind === 'leaf') return node
      if (node.kind === 'stub') throw missing(node.hash)
      const right = bitAt(id, depth) === 1
      siblings?.push(hashOf(right ? node.left : node.right))
      node = right ? node.right : node.left
    }
  }
}

interface Change {
  readonly id: Id
  readonly valueHash: Hash | null
}

/** One batch on its way down the tree. `from` and `to` bound the changes that fall into a subtree. */
class Update {
  constructor(
    private readonly changes: readonly Change[],
    private readonly trace: Set<StateNode> | undefined,
  ) {}

  apply(node: StateNode, from: number, to: number, depth: number): StateNode {
    if (from === to) return node
    if (node === undefined) return this.build(undefined, from, to, depth)
    this.trace?.add(node)
    if (node.kind === 'leaf') return this.build(node, from, to, depth)
    if (node.kind === 'stub') throw missing(node.hash)
    const middle = this.split(from, to, depth)
    const left = this.apply(node.left, from, middle, depth + 1)
    const right = this.apply(node.right, middle, to, depth + 1)
    return left === node.left && right === node.right ? node : this.join(left, right)
  }

  /** A subtree that held at most one leaf before. */
  private build(resident: StateLeaf | undefined, from: number, to: number, depth: number): StateNode {
    if (from === to) return resident
    const first = this.changes[from]!
    if (to - from === 1 && (resident === undefined || resident.id === first.id)) {
      if (first.valueHash === null) return undefined
      return resident !== undefined && sameHash(resident.valueHash, first.valueHash)
        ? resident
        : leafOf(first.id, first.valueHash)
    }
    const middle = this.split(from, to, depth)
    const residentRight = resident !== undefined && bitAt(resident.id, depth) === 1
    const left = this.build(residentRight ? undefined : resident, from, middle, depth + 1)
    const right = this.build(residentRight ? resident : undefined, middle, to, depth + 1)
    return this.join(left, right)
  }

  /** One leaf and nothing beside it moves up, so beside an empty side one must know what the other side is. */
  private join(left: StateNode, right: StateNode): StateNode {
    if (left !== undefined && right !== undefined) return branchOf(left, right)
    const only = left ?? right
    if (only === undefined) return undefined
    this.trace?.add(only)
    if (only.kind === 'stub') throw missing(only.hash)
    return only.kind === 'leaf' ? only : branchOf(left, right)
  }

  /** Where the changes that go right begin. */
  private split(from: number, to: number, depth: number): number {
    let low = from
    let high = to
    while (low < high) {
      const middle = (low + high) >> 1
      if (bitAt(this.changes[middle]!.id, depth) === 1) high = middle
      else low = middle + 1
    }
    return low
  }
}

function missing(hash: Hash): SionError {
  return new SionError('missing_witness', `the witness does not hold the state node ${toHex(hash)}, which is needed here`)
}
