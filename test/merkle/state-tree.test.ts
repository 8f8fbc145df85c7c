import { describe, expect, it } from 'vitest'
import { InputError, type Id } from '../../src/codec/index.js'
import { taggedHash } from '../../src/crypto/hash.js'
import {
  decodeStateProof,
  EMPTY_STATE_ROOT,
  encodeStateProof,
  sameHash,
  StateTree,
  verifyState,
  type StateProof,
} from '../../src/merkle/index.js'
import { bitsOf, hex, idOf, referenceRoot, tagged, valueOf } from './state-reference.js'

const zero = new Uint8Array(32)
const bytesOf = (id: Id): Uint8Array => new Uint8Array(Buffer.from(id, 'hex'))

/** 1,000 objects with ids that look random, as real ones do. */
const objects = new Map(Array.from({ length: 1_000 }, (_, i) => [hex(valueOf(`id ${i}`)) ?? '', valueOf(i)]))
const tree = StateTree.empty.update(objects)
const [present = '', other = ''] = objects.keys()
const value = objects.get(present) ?? zero
const absentByLeaf = absent((proof) => proof.leaf !== undefined)
const absentByEmpty = absent((proof) => proof.leaf === undefined)

function absent(fits: (proof: StateProof) => boolean): Id {
  for (let i = 0; ; i++) {
    const id = hex(valueOf(`absent ${i}`)) ?? ''
    if (fits(tree.prove(id))) return id
  }
}

describe('the state root', () => {
  it('of nothing is 32 zero bytes', () => {
    expect(StateTree.empty.root).toEqual(zero)
    expect(EMPTY_STATE_ROOT).toEqual(zero)
  })

  it('of one object is its leaf, and of two that differ in the first bit one node', () => {
    const a = idOf('0')
    const b = idOf('1')
    const leafA = taggedHash('sion/state-leaf/v1', bytesOf(a), valueOf('a'))
    const leafB = taggedHash('sion/state-leaf/v1', bytesOf(b), valueOf('b'))
    expect(StateTree.empty.update(new Map([[a, valueOf('a')]])).root).toEqual(leafA)
    const both = StateTree.empty.update(new Map([[a, valueOf('a')], [b, valueOf('b')]]))
    expect(both.root).toEqual(taggedHash('sion/state-node/v1', leafA, leafB))
  })

  it('is the defined one for a thousand objects, and after half of them went', () => {
    expect(hex(tree.root)).toBe(referenceRoot(objects))
    const gone = [...objects.keys()].slice(0, 500)
    const rest = new Map([...objects].slice(500))
    expect(hex(tree.update(new Map(gone.map((id) => [id, null]))).root)).toBe(referenceRoot(rest))
    expect(tree.update(new Map(Array.from(objects.keys(), (id) => [id, null]))).root).toEqual(zero)
  })

  it('is pinned: these bytes are the protocol', () => {
    expect(hex(tree.root)).toBe('c202ef92c157b374a1bbca901ca17654271eb9f34bbd1f14c121401753bb9283')
  })
})

describe('an update', () => {
  it('that changes nothing gives the same tree', () => {
    expect(tree.update(new Map())).toBe(tree)
    expect(tree.update(new Map([[present, value.slice()]]))).toBe(tree)
    expect(tree.update(new Map([[absentByLeaf, null], [absentByEmpty, null]]))).toBe(tree)
  })

  it('refuses what is no id and what is no hash', () => {
    expect(() => tree.update(new Map([['abc', value]]))).toThrow(InputError)
    expect(() => tree.update(new Map([[present.toUpperCase(), value]]))).toThrow(InputError)
    expect(() => tree.update(new Map([[present, new Uint8Array(31)]]))).toThrow('valueHash: expected 32 bytes, not 31')
    expect(() => tree.get('abc')).toThrow(InputError)
    expect(() => tree.prove('')).toThrow(InputError)
  })

  it('copies what it is given', () => {
    const mine = valueOf('mine')
    const changed = tree.update(new Map([[other, mine]]))
    mine.fill(0)
    expect(changed.get(other)).toEqual(valueOf('mine'))
  })
})

describe('ids that share a long prefix', () => {
  it.each([1, 8, 64, 200, 254, 255])('%i bits long keep both objects, provable, and collapse when one goes', (shared) => {
    const a = idOf(`${'10'.repeat(128).slice(0, shared)}0`)
    const b = idOf(`${'10'.repeat(128).slice(0, shared)}1`)
    const pair = new Map([[a, valueOf('a')], [b, valueOf('b')]])
    const both = StateTree.empty.update(pair)
    expect(hex(both.root)).toBe(referenceRoot(pair))
    const proof = both.prove(a)
    expect(proof.siblings).toHaveLength(shared + 1)
    expect(JSON.stringify(encodeStateProof(proof)).length).toBeLessThan(100 + 3 * 256)
    expect(verifyState(both.root, a, valueOf('a'), proof)).toBe(true)
    expect(verifyState(both.root, b, valueOf('a'), proof)).toBe(false)
    expect(both.update(new Map([[b, null]])).root).toEqual(StateTree.empty.update(new Map([[a, valueOf('a')]])).root)

    // Where the two part from a third id, nothing is: absence by an empty place.
    const off = idOf(bitsOf(a)[0] === '0' ? '1' : '0')
    expect(verifyState(both.root, off, undefined, both.prove(off))).toBe(true)
  })
})

describe('a state proof is refused', () => {
  const proof = tree.prove(present)

  it('unless everything is right', () => {
    expect(verifyState(tree.root, present, value, proof)).toBe(true)
    expect(verifyState(tree.root, absentByLeaf, undefined, tree.prove(absentByLeaf))).toBe(true)
    expect(verifyState(tree.root, absentByEmpty, undefined, tree.prove(absentByEmpty))).toBe(true)
    expect(verifyState(zero, present, undefined, { siblings: [] })).toBe(true)
  })

  it('against an old root, and an old one against the new root', () => {
    const later = tree.update(new Map([[present, valueOf('new')]]))
    expect(verifyState(later.root, present, value, proof)).toBe(false)
    expect(verifyState(tree.root, present, valueOf('new'), later.prove(present))).toBe(false)
    expect(verifyState(later.root, present, valueOf('new'), later.prove(present))).toBe(true)
    const without = tree.update(new Map([[present, null]]))
    expect(verifyState(tree.root, present, undefined, without.prove(present))).toBe(false)
    expect(verifyState(without.root, present, value, proof)).toBe(false)
  })

  it('for another value, another id, or as the opposite', () => {
    expect(verifyState(tree.root, present, valueOf('x'), proof)).toBe(false)
    expect(verifyState(tree.root, other, value, proof)).toBe(false)
    expect(verifyState(tree.root, present, undefined, proof)).toBe(false)
    expect(verifyState(tree.root, absentByEmpty, value, tree.prove(absentByEmpty))).toBe(false)
    expect(verifyState(tree.root, absentByLeaf, value, tree.prove(absentByLeaf))).toBe(false)
  })

  it('when it shows absence by the leaf of the id itself', () => {
    const own = { siblings: proof.siblings, leaf: { id: present, valueHash: value } }
    expect(verifyState(tree.root, present, undefined, own)).toBe(false)
    expect(verifyState(tree.root, present, value, own)).toBe(false)
  })

  it('when it shows absence by a leaf off the path of the id', () => {
    const leaf = { id: other, valueHash: objects.get(other) ?? zero }
    const { siblings } = tree.prove(other)
    expect(verifyState(tree.root, other, leaf.valueHash, { siblings })).toBe(true)
    expect(verifyState(tree.root, present, undefined, { siblings, leaf })).toBe(false)
    expect(verifyState(tree.root, present, undefined, { siblings: proof.siblings, leaf })).toBe(false)
    expect(verifyState(tree.root, absentByEmpty, undefined, { siblings, leaf })).toBe(false)
  })

  it('when a leaf off the path would hash to the root along its own way', () => {
    // Both ends of the tree: the proof of one, read along the path of the other, must not pass as its absence.
    const a = idOf('00')
    const b = idOf('11')
    const two = StateTree.empty.update(new Map([[a, valueOf('a')], [b, valueOf('b')]]))
    const { siblings } = two.prove(b)
    expect(verifyState(two.root, a, undefined, { siblings, leaf: { id: b, valueHash: valueOf('b') } })).toBe(false)
    expect(verifyState(two.root, idOf('10'), undefined, { siblings, leaf: { id: b, valueHash: valueOf('b') } })).toBe(true)
  })

  it('when a leaf is off the path by one bit, even under a root that someone built to hold it there', () => {
    const leaf = { id: idOf('010'), valueHash: value }
    const misplaced = tagged('sion/state-leaf/v1', bytesOf(leaf.id), value)
    const hung = (depth: number): Uint8Array => {
      let node = misplaced
      for (let i = 0; i < depth; i++) node = tagged('sion/state-node/v1', node, zero)
      return new Uint8Array(node)
    }
    const proof = (depth: number): StateProof => ({ siblings: Array.from({ length: depth }, () => zero), leaf })
    expect(verifyState(hung(1), idOf('000'), undefined, proof(1))).toBe(true)
    expect(verifyState(hung(2), idOf('000'), undefined, proof(2))).toBe(false)
    expect(verifyState(hung(3), idOf('000'), undefined, proof(3))).toBe(false)
  })

  it('when it shows absence by "empty" over an occupied place', () => {
    for (let depth = 0; depth <= proof.siblings.length; depth++) {
      expect(verifyState(tree.root, present, undefined, { siblings: proof.siblings.slice(depth) })).toBe(false)
      expect(verifyState(tree.root, present, undefined, { siblings: [...Array.from({ length: depth }, () => zero), ...proof.siblings] })).toBe(false)
    }
    expect(verifyState(tree.root, present, undefined, { siblings: [] })).toBe(false)
  })

  it('when an inner node stands for the leaf', () => {
    const inner = tagged('sion/state-node/v1', proof.siblings[0] ?? zero, zero)
    expect(verifyState(tree.root, present, new Uint8Array(inner), { siblings: proof.siblings.slice(1) })).toBe(false)
    const half = StateTree.empty.update(new Map([[idOf('0'), value], [idOf('1'), value]]))
    expect(verifyState(half.root, idOf('0'), half.root, { siblings: [] })).toBe(false)
  })

  it('when it is too long, too short, reordered, or has a node that is not 32 bytes', () => {
    const { siblings } = proof
    const check = (changed: readonly Uint8Array[]): boolean => verifyState(tree.root, present, value, { siblings: changed })
    expect(check(siblings.slice(1))).toBe(false)
    expect(check(siblings.slice(0, -1))).toBe(false)
    expect(check([zero, ...siblings])).toBe(false)
    expect(check([...siblings, zero])).toBe(false)
    expect(check(siblings.toReversed())).toBe(false)
    expect(check(Array.from({ length: 257 }, () => zero))).toBe(false)
    for (const length of [0, 31, 33, 64]) expect(check(siblings.with(0, new Uint8Array(length)))).toBe(false)
    expect(verifyState(tree.root.slice(1), present, value, proof)).toBe(false)
    expect(verifyState(tree.root, present, value.slice(1), proof)).toBe(false)
    expect(verifyState(tree.root, present.slice(1), value, proof)).toBe(false)
    expect(verifyState(tree.root, present.toUpperCase(), value, proof)).toBe(false)
  })

  it('with any single bit of it flipped', () => {
    const shows = tree.prove(absentByLeaf)
    for (const [at, sibling] of proof.siblings.entries()) {
      const bad = sibling.slice()
      bad[at] = bad[at]! ^ 1
      expect(verifyState(tree.root, present, value, { siblings: proof.siblings.with(at, bad) })).toBe(false)
    }
    const { leaf } = shows
    if (leaf === undefined) throw new Error('the test picked an id that no leaf stands in for')
    const bad = leaf.valueHash.slice()
    bad[0] = bad[0]! ^ 1
    const verify = (changed: StateProof): boolean => verifyState(tree.root, absentByLeaf, undefined, changed)
    expect(verify({ ...shows, leaf: { id: leaf.id, valueHash: bad } })).toBe(false)
    expect(verify({ ...shows, leaf: { id: `${leaf.id.slice(0, 63)}${leaf.id.endsWith('0') ? 1 : 0}`, valueHash: leaf.valueHash } })).toBe(false)
    expect(verify({ siblings: shows.siblings })).toBe(false)
  })
})

describe('a state proof as JSON', () => {
  const hash = 'ab'.repeat(32)

  it('writes an empty sibling as the empty text', () => {
    const close = StateTree.empty.update(new Map([[idOf('0001'), value], [idOf('0000'), value]]))
    const json = encodeStateProof(close.prove(idOf('0001')))
    expect(json.siblings.map((text) => text.length)).toEqual([64, 0, 0, 0])
    expect(decodeStateProof(json, 'proof').siblings.filter((sibling) => sameHash(sibling, zero))).toHaveLength(3)
  })

  it.each([
    [null, 'proof: expected an object, not null'],
    [[], 'proof: expected an object, not an array'],
    [{}, 'proof.siblings: expected an array, not nothing'],
    [{ siblings: [], extra: 1 }, 'proof: unknown field "extra"'],
    [{ siblings: [''], leaf: null }, 'proof.leaf: expected an object, not null'],
    [{ siblings: ['00'] }, 'proof.siblings[0]: expected 64 hex digits, not 2'],
    [{ siblings: [hash, 7] }, 'proof.siblings[1]: expected hex text, not a number'],
    [{ siblings: ['00'.repeat(32)] }, 'proof.siblings[0]: an empty sibling is written as the empty text'],
    [{ siblings: ['AB'.repeat(32)] }, 'proof.siblings[0]: expected lower-case hex digits only'],
    [{ siblings: Array.from({ length: 257 }, () => '') }, 'proof.siblings: a proof has at most 256 siblings, not 257'],
    [{ siblings: [], leaf: { id: hash } }, 'proof.leaf.valueHash: expected hex text, not nothing'],
    [{ siblings: [], leaf: { id: 'x', valueHash: hash } }, 'proof.leaf.id: expected an id of 64 lower-case hex digits, not "x"'],
    [{ siblings: [], leaf: { id: hash, valueHash: hash, at: 1 } }, 'proof.leaf: unknown field "at"'],
  ])('is refused by name: %#', (json, message) => {
    expect(() => decodeStateProof(json, 'proof')).toThrow(InputError)
    expect(() => decodeStateProof(json, 'proof')).toThrow(message)
  })
})

describe('a witness', () => {
  it('is small beside the state, and its tree knows only what was read', () => {
    const traced = tree.traced()
    expect(traced.tree.get(present)).toEqual(value)
    const bytes = traced.witness()
    expect(bytes.length).toBeLessThan(20 * 34 + 65)
    const partial = StateTree.fromWitness(bytes, 'witness')
    expect(partial.root).toEqual(tree.root)
    expect(partial.get(present)).toEqual(value)
    expect(partial.prove(present)).toEqual(tree.prove(present))
    expect(() => partial.get(other)).toThrow(expect.objectContaining({ code: 'missing_witness' }))
    expect(() => partial.update(new Map([[other, value]]))).toThrow(expect.objectContaining({ code: 'missing_witness' }))
    expect(() => partial.prove(other)).toThrow(expect.objectContaining({ code: 'missing_witness' }))
  })

  it('for a delete holds the sibling that moves up, and without it the delete fails', () => {
    const three = StateTree.empty.update(new Map([[idOf('00'), valueOf(0)], [idOf('01'), valueOf(1)], [idOf('1'), valueOf(2)]]))
    const deletion = new Map([[idOf('00'), null]])
    const read = three.traced()
    read.tree.get(idOf('00'))
    const tooLittle = StateTree.fromWitness(read.witness(), 'witness')
    expect(() => tooLittle.update(deletion)).toThrow(expect.objectContaining({ code: 'missing_witness' }))
    const traced = three.traced()
    const after = traced.tree.update(deletion)
    expect(StateTree.fromWitness(traced.witness(), 'witness').update(deletion).root).toEqual(after.root)
  })

  it('of a tree that nobody read is its root, and of the empty tree one byte', () => {
    const nothing = StateTree.fromWitness(tree.traced().witness(), 'witness')
    expect(nothing.root).toEqual(tree.root)
    expect(() => nothing.get(present)).toThrow(expect.objectContaining({ code: 'missing_witness' }))
    expect([...StateTree.empty.traced().witness()]).toEqual([0])
    expect(StateTree.fromWitness(Uint8Array.of(0), 'witness').get(present)).toBeUndefined()
  })

  it('may be any part of a larger buffer, which it does not hold on to', () => {
    const traced = tree.traced()
    traced.tree.get(present)
    const padded = Buffer.concat([Buffer.alloc(7), traced.witness()])
    const partial = StateTree.fromWitness(padded.subarray(7), 'witness')
    padded.fill(0)
    expect(partial.root).toEqual(tree.root)
    expect(partial.get(present)).toEqual(value)
    expect(verifyState(partial.root, present, value, partial.prove(present))).toBe(true)
  })

  const leaf = (bits: string): number[] => [2, ...bytesOf(idOf(bits)), ...value]
  const stub = [1, ...value]
  it.each([
    ['nothing at all', [], 'byte 0: 1 bytes expected, 0 left'],
    ['an unknown kind', [4], 'byte 0: unknown node kind 4'],
    ['a cut hash', stub.slice(0, 32), 'byte 1: 32 bytes expected, 31 left'],
    ['a cut leaf', leaf('0').slice(0, 64), 'byte 33: 32 bytes expected, 31 left'],
    ['half a branch', [3, ...stub], 'byte 34: 1 bytes expected, 0 left'],
    ['bytes left over', [...stub, 0], '1 bytes after the witness'],
    ['an empty subtree as a hash', [1, ...zero], 'byte 0: an empty subtree written as a hash'],
    ['a branch over nothing', [3, 0, 0], 'byte 0: a branch over fewer than two leaves'],
    ['a branch over one leaf', [3, ...leaf('0'), 0], 'byte 0: a branch over fewer than two leaves'],
    ['a branch over one leaf on the right', [3, 0, ...leaf('1')], 'byte 0: a branch over fewer than two leaves'],
    ['a leaf off its path', [3, ...leaf('1'), ...stub], 'byte 1: a leaf that leaves its path at bit 0'],
    ['a leaf off its path further down', [3, ...stub, 3, ...stub, ...leaf('10')], 'byte 68: a leaf that leaves its path at bit 1'],
    ['branches without end', Array.from({ length: 100_000 }, () => 3), 'byte 256: a branch below depth 256'],
  ])('is refused for %s', (_, bytes, message) => {
    expect(() => StateTree.fromWitness(Uint8Array.from(bytes), 'witness')).toThrow(InputError)
    expect(() => StateTree.fromWitness(Uint8Array.from(bytes), 'witness')).toThrow(`witness: ${message}`)
  })
})
