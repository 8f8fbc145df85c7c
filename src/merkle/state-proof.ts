import { InputError } from '../codec/errors.js'
import { describe, fromHex, isId, parseId, toHex, type Id } from '../codec/hex.js'
import { HASH_LENGTH, isHash, sameHash, type Hash } from './hash32.js'
import { bitAt, EMPTY_STATE_ROOT, MAX_DEPTH, sharedBits, stateBranchHash, stateLeafHash } from './state-node.js'

/**
 * What shows an object, or its absence, under a state root. An id's place in the tree follows from its bits, so the
 * proof says only how deep it ends and what stands beside the path.
 */
export interface StateProof {
  /** From the deepest upwards, at most 256; 32 zero bytes for an empty one. */
  readonly siblings: readonly Hash[]
  /** Only in a proof of absence: the one leaf that has the place where the id would be. */
  readonly leaf?: { readonly id: Id; readonly valueHash: Hash }
}

/**
 * Whether `id` has the object with `valueHash` under `root`, or, for undefined, whether it has none. Absence is an empty
 * place on the id's path, or the leaf of another id that shares the path that far. Anything malformed is false; nothing
 * throws. A proof says nothing about any other root: the caller decides which is the present one.
 */
export function verifyState(root: Hash, id: Id, valueHash: Hash | undefined, proof: StateProof): boolean {
  if (!isHash(root) || !isId(id) || !isProof(proof)) return false
  let node = EMPTY_STATE_ROOT
  const { siblings, leaf } = proof
  if (valueHash !== undefined) {
    if (!isHash(valueHash) || leaf !== undefined) return false
    node = stateLeafHash(id, valueHash)
  } else if (leaf !== undefined) {
    if (leaf.id === id || sharedBits(leaf.id, id) < siblings.length) return false
    node = stateLeafHash(leaf.id, leaf.valueHash)
  }
  let depth = siblings.length
  for (const sibling of siblings) {
    depth--
    node = bitAt(id, depth) === 1 ? stateBranchHash(sibling, node) : stateBranchHash(node, sibling)
  }
  return sameHash(node, root)
}

/** A proof as JSON. An empty sibling is the empty text: under a crowd of similar ids most of them are. */
export interface StateProofJson {
  siblings: string[]
  leaf?: { id: Id; valueHash: string }
}

export function encodeStateProof(proof: StateProof): StateProofJson {
  const siblings = proof.siblings.map((sibling) => (sameHash(sibling, EMPTY_STATE_ROOT) ? '' : toHex(sibling)))
  if (proof.leaf === undefined) return { siblings }
  return { siblings, leaf: { id: proof.leaf.id, valueHash: toHex(proof.leaf.valueHash) } }
}

/** @throws InputError naming the part of `field` that is not as {@link encodeStateProof} writes it. */
export function decodeStateProof(value: unknown, field: string): StateProof {
  const { siblings: texts, leaf } = fieldsOf(value, field, ['siblings', 'leaf'])
  if (!Array.isArray(texts)) throw new InputError(`${field}.siblings`, `expected an array, not ${describe(texts)}`)
  if (texts.length > MAX_DEPTH) {
    throw new InputError(`${field}.siblings`, `a proof has at most ${MAX_DEPTH} siblings, not ${texts.length}`)
  }
  const siblings = texts.map((text: unknown, at) => decodeSibling(text, `${field}.siblings[${at}]`))
  if (leaf === undefined) return { siblings }
  const { id, valueHash } = fieldsOf(leaf, `${field}.leaf`, ['id', 'valueHash'])
  return {
    siblings,
    leaf: {
      id: parseId(id, `${field}.leaf.id`),
      valueHash: fromHex(valueHash, `${field}.leaf.valueHash`, HASH_LENGTH),
    },
  }
}

function decodeSibling(text: unknown, field: string): Hash {
  if (text === '') return EMPTY_STATE_ROOT
  const sibling = fromHex(text, field, HASH_LENGTH)
  if (sameHash(sibling, EMPTY_STATE_ROOT)) throw new InputError(field, 'an empty sibling is written as the empty text')
  return sibling
}

function fieldsOf(value: unknown, field: string, known: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError(field, `expected an object, not ${describe(value)}`)
  }
  for (const key of Object.keys(value)) {
    if (!known.includes(key)) throw new InputError(field, `unknown field ${JSON.stringify(key.slice(0, 40))}`)
  }
  return { ...value }
}

/** Types vanish at run time, and proofs come from strangers. */
function isProof(value: unknown): value is StateProof {
  if (typeof value !== 'object' || value === null) return false
  const { siblings, leaf }: { siblings?: unknown; leaf?: unknown } = value
  if (!Array.isArray(siblings) || siblings.length > MAX_DEPTH) return false
  for (const sibling of siblings) if (!isHash(sibling)) return false
  if (leaf === undefined) return true
  if (typeof leaf !== 'object' || leaf === null) return false
  const { id, valueHash }: { id?: unknown; valueHash?: unknown } = leaf
  return isId(id) && isHash(valueHash)
}
