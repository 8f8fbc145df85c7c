import * as P from 'micro-packed'
import { byKind, id, list, text, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { bondId } from './ids.js'

/** The signature families of the ledger, by the names of their standards (FIPS 204, FIPS 205). */
export type SignatureFamily = 'ML-DSA-44' | 'SLH-DSA-SHA2-128f'

export const SIGNATURE_FAMILIES: readonly SignatureFamily[] = ['ML-DSA-44', 'SLH-DSA-SHA2-128f']

/** What a claim can rest on and who wants it false must overcome: a signature family, or money that the issuer stands to lose. */
export type Atom =
  | { readonly kind: 'signature'; readonly family: SignatureFamily }
  | { readonly kind: 'bond'; readonly owner: Id; readonly label: string }

/**
 * What a claim rests on. `allOf` falls when all of its parts are corrupted, `anyOf` with the first of them, `kOf` with
 * the k-th.
 */
export type Formula =
  | Atom
  | { readonly kind: 'allOf'; readonly of: readonly Formula[] }
  | { readonly kind: 'anyOf'; readonly of: readonly Formula[] }
  | { readonly kind: 'kOf'; readonly k: number; readonly of: readonly Formula[] }

/** Atoms and connectives in one formula, at most. */
export const MAX_FORMULA_NODES = 64
/** How deep they nest, at most. */
export const MAX_FORMULA_DEPTH = 8
export const MAX_LABEL_BYTES = 64

/** The issuer's own dual signature: it takes both families to forge it. */
export const DUAL_SIGNATURE: Formula = { kind: 'allOf', of: SIGNATURE_FAMILIES.map((family) => ({ kind: 'signature', family })) }

/** How policies and reports call an atom. A family has one id for all claims; a bond's is the bond's own. */
export function atomId(atom: Atom): Id {
  return atom.kind === 'bond' ? bondId(atom.owner, atom.label) : toHex(taggedHash('sion/signature-atom/v1', new TextEncoder().encode(atom.family)))
}

/** The atoms of a formula, each once, in the order in which they first stand in it. */
export function atomsOf(formula: Formula): Map<Id, Atom> {
  const found = new Map<Id, Atom>()
  const look = (part: Formula): void => {
    if (part.kind === 'signature' || part.kind === 'bond') {
      const id = atomId(part)
      if (!found.has(id)) found.set(id, part)
    } else part.of.forEach(look)
  }
  look(formula)
  return found
}

/** Whether the formula rests on `family` anywhere. */
export function restsOnFamily(formula: Formula, family: SignatureFamily): boolean {
  return [...atomsOf(formula).values()].some((atom) => atom.kind === 'signature' && atom.family === family)
}

/** A part of a formula as bytes: an atom, or a connective with how many of the parts that follow are its own. */
type Node =
  | { readonly kind: 'mlDsa44' }
  | { readonly kind: 'slhDsa128f' }
  | { readonly kind: 'bond'; readonly owner: Id; readonly label: string }
  | { readonly kind: 'allOf'; readonly parts: number }
  | { readonly kind: 'anyOf'; readonly parts: number }
  | { readonly kind: 'kOf'; readonly k: number; readonly parts: number }

const node = byKind<Node>({
  mlDsa44: [1, P.struct({})],
  slhDsa128f: [2, P.struct({})],
  bond: [3, P.struct({ owner: id, label: text(MAX_LABEL_BYTES) })],
  allOf: [4, P.struct({ parts: P.U8 })],
  anyOf: [5, P.struct({ parts: P.U8 })],
  kOf: [6, P.struct({ k: P.U8, parts: P.U8 })],
})

/** An atom by itself. */
export const atom: P.CoderType<Atom> = P.apply(node, {
  encode: (found: Node): Atom => {
    const [only, ...others] = treeOf([found])
    if (only === undefined || others.length > 0 || (only.kind !== 'signature' && only.kind !== 'bond')) throw new RangeError('not an atom')
    return only
  },
  decode: (value: Atom) => nodeOf(value),
})

/**
 * A formula as bytes: its parts in prefix order. Flat, so that no nesting that a stranger sends can exhaust a stack.
 * Refused are connectives of nothing, thresholds that cannot be reached, and more or deeper than the limits.
 */
export const formula: P.CoderType<Formula> = P.apply(list(node, MAX_FORMULA_NODES), {
  encode: (nodes: Node[]): Formula => {
    const [only, ...others] = treeOf(nodes)
    if (only === undefined || others.length > 0) throw new RangeError('a formula is one tree')
    return only
  },
  decode: (value: Formula) => {
    const nodes: Node[] = []
    flatten(value, nodes, 1)
    return nodes
  },
})

function flatten(value: Formula, into: Node[], depth: number): void {
  if (depth > MAX_FORMULA_DEPTH) throw new RangeError(`a formula nests at most ${MAX_FORMULA_DEPTH} deep`)
  into.push(nodeOf(value))
  if (into.length > MAX_FORMULA_NODES) throw new RangeError(`a formula has at most ${MAX_FORMULA_NODES} parts`)
  if (value.kind !== 'signature' && value.kind !== 'bond') for (const part of value.of) flatten(part, into, depth + 1)
}

function nodeOf(value: Formula): Node {
  switch (value.kind) {
    case 'signature':
      return { kind: value.family === 'ML-DSA-44' ? 'mlDsa44' : 'slhDsa128f' }
    case 'bond':
      return { kind: 'bond', owner: value.owner, label: value.label }
    case 'kOf':
      checkParts(value.of.length, value.k)
      return { kind: 'kOf', k: value.k, parts: value.of.length }
    default:
      checkParts(value.of.length)
      return { kind: value.kind, parts: value.of.length }
  }
}

function checkParts(parts: number, k = 1): void {
  if (parts < 1) throw new RangeError('a connective of no parts')
  if (k < 1 || k > parts) throw new RangeError(`${k} of ${parts} parts`)
}

/** The trees that nodes in prefix order stand for: built from the last one backwards, each taking its parts off the pile. */
function treeOf(nodes: readonly Node[]): Formula[] {
  const pile: { tree: Formula; depth: number }[] = []
  for (const found of nodes.toReversed()) {
    if (found.kind === 'mlDsa44') pile.push({ tree: { kind: 'signature', family: 'ML-DSA-44' }, depth: 1 })
    else if (found.kind === 'slhDsa128f') pile.push({ tree: { kind: 'signature', family: 'SLH-DSA-SHA2-128f' }, depth: 1 })
    else if (found.kind === 'bond') pile.push({ tree: { kind: 'bond', owner: found.owner, label: found.label }, depth: 1 })
    else {
      checkParts(found.parts, found.kind === 'kOf' ? found.k : 1)
      if (found.parts > pile.length) throw new RangeError('a connective with fewer parts than it says')
      const parts = pile.splice(pile.length - found.parts).reverse()
      const depth = 1 + Math.max(...parts.map((part) => part.depth))
      if (depth > MAX_FORMULA_DEPTH) throw new RangeError(`a formula nests at most ${MAX_FORMULA_DEPTH} deep`)
      const of = parts.map(({ tree }) => tree)
      pile.push({ tree: found.kind === 'kOf' ? { kind: 'kOf', k: found.k, of } : { kind: found.kind, of }, depth })
    }
  }
  return pile.reverse().map(({ tree }) => tree)
}
