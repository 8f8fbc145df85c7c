import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SionError, type Id } from '../../src/codec/index.js'
import {
  decodeStateProof,
  encodeStateProof,
  StateTree,
  verifyState,
  type StateChanges,
  type StateProof,
} from '../../src/merkle/index.js'
import { hex, idOf, referenceRoot, tagged, valueOf } from './state-reference.js'

/** Ids that crowd: few bits at the top, the same long middle, few bits at the end, so that all depths occur. */
const id: fc.Arbitrary<Id> = fc
  .tuple(fc.nat(7), fc.constantFrom(0, 1, 3, 60, 250), fc.nat(7))
  .map(([top, middle, end]) => {
    const bits = (n: number): string => n.toString(2).padStart(3, '0')
    return idOf(bits(top) + '1'.repeat(middle) + bits(end))
  })
const value = fc.nat(3).map(valueOf)
const changes: fc.Arbitrary<StateChanges> = fc
  .array(fc.tuple(id, fc.option(value, { freq: 2 })), { maxLength: 12 })
  .map((entries) => new Map(entries))
const history = fc.array(changes, { maxLength: 8 })

function applyTo(objects: Map<Id, Uint8Array>, batch: StateChanges): void {
  for (const [key, valueHash] of batch) {
    if (valueHash === null) objects.delete(key)
    else objects.set(key, valueHash)
  }
}

function replay(batches: StateChanges[]): { tree: StateTree; objects: Map<Id, Uint8Array> } {
  const objects = new Map<Id, Uint8Array>()
  let tree = StateTree.empty
  for (const batch of batches) {
    tree = tree.update(batch)
    applyTo(objects, batch)
  }
  return { tree, objects }
}

function shuffled<T>(items: Iterable<T>, seed: number): T[] {
  const keyed = Array.from(items, (item, at) => ({ item, key: hex(valueOf(`${seed} ${at}`)) ?? '' }))
  return keyed.sort((a, b) => (a.key < b.key ? -1 : 1)).map(({ item }) => item)
}

describe('the state tree against a rebuild from its definition', () => {
  it('has the root of the present objects after every step of any history', () => {
    fc.assert(
      fc.property(history, (batches) => {
        const objects = new Map<Id, Uint8Array>()
        let tree = StateTree.empty
        for (const batch of batches) {
          tree = tree.update(batch)
          applyTo(objects, batch)
          expect(hex(tree.root)).toBe(referenceRoot(objects))
          for (const key of batch.keys()) expect(tree.get(key)).toEqual(objects.get(key))
        }
      }),
      { numRuns: 400 },
    )
  })

  it('forgets how the objects came: order, batches and deleted ones leave no trace in the root', () => {
    fc.assert(
      fc.property(history, changes, fc.nat(), (batches, noise, seed) => {
        const { tree, objects } = replay(batches)
        const oneByOne = shuffled(objects, seed).reduce((grown, entry) => grown.update(new Map([entry])), StateTree.empty)
        expect(oneByOne.root).toEqual(tree.root)
        expect(StateTree.empty.update(new Map(shuffled(objects, seed + 1))).root).toEqual(tree.root)
        const undone = new Map(Array.from(noise.keys(), (key) => [key, objects.get(key) ?? null]))
        expect(tree.update(noise).update(undone).root).toEqual(tree.root)
      }),
      { numRuns: 400 },
    )
  })

  it('keeps old versions as they were', () => {
    fc.assert(
      fc.property(history, changes, (batches, more) => {
        const { tree, objects } = replay(batches)
        tree.update(more)
        expect(hex(tree.root)).toBe(referenceRoot(objects))
        for (const key of more.keys()) expect(tree.get(key)).toEqual(objects.get(key))
      }),
    )
  })

  it('proves of every id what is true of it and nothing else, also through JSON', () => {
    fc.assert(
      fc.property(history, id, value, (batches, asked, other) => {
        const { tree, objects } = replay(batches)
        const truth = objects.get(asked)
        const proof = tree.prove(asked)
        const read = decodeStateProof(JSON.parse(JSON.stringify(encodeStateProof(proof))), 'proof')
        expect(read).toEqual(proof)
        expect(verifyState(tree.root, asked, truth, read)).toBe(true)
        expect(verifyState(tree.root, asked, truth === undefined ? other : undefined, read)).toBe(false)
        if (hex(truth) !== hex(other)) expect(verifyState(tree.root, asked, other, read)).toBe(false)
      }),
      { numRuns: 400 },
    )
  })

  it('accepts no forged proof: any proof put together from true parts shows only what is true', () => {
    fc.assert(
      fc.property(
        history,
        fc.array(id, { minLength: 2, maxLength: 6 }),
        fc.array(fc.tuple(fc.nat(300), fc.nat(300)), { minLength: 1, maxLength: 4 }),
        (batches, ids, cuts) => {
          const { tree, objects } = replay(batches)
          const proofs = ids.map((each) => tree.prove(each))
          const leaves = [undefined, ...[...objects].map(([key, valueHash]) => ({ id: key, valueHash }))]
          for (const [start, end] of cuts) {
            for (const { siblings } of proofs) {
              for (const leaf of leaves) {
                const cut = siblings.slice(start % (siblings.length + 1), siblings.length - (end % 3))
                const proof: StateProof = leaf === undefined ? { siblings: cut } : { siblings: cut, leaf }
                for (const asked of ids) {
                  if (verifyState(tree.root, asked, undefined, proof)) expect(objects.has(asked)).toBe(false)
                }
              }
            }
          }
        },
      ),
      { numRuns: 100 },
    )
  })

  it('answers false, and throws nothing, for whatever it is handed as a proof', () => {
    const part = fc.oneof(fc.uint8Array({ minLength: 32, maxLength: 32 }), fc.anything())
    const proof = fc.oneof(fc.record({ siblings: fc.oneof(fc.array(part), part), leaf: part }, { requiredKeys: [] }), part)
    fc.assert(
      fc.property(part, fc.oneof(id, part), part, proof, (root, asked, valueHash, hostile) => {
        // The one thing that needs no forging: under the empty root nothing is there.
        fc.pre(!(root instanceof Uint8Array) || root.some((byte) => byte !== 0))
        // @ts-expect-error: types are no protection from what was parsed
        expect(verifyState(root, asked, valueHash, hostile)).toBe(false)
      }),
      { numRuns: 2_000 },
    )
  })

  it('refuses a proof as JSON only with our own errors', () => {
    const part = fc.oneof(fc.constantFrom('', '00'.repeat(32), 'ff'.repeat(32)), fc.anything())
    const json = fc.oneof(fc.record({ siblings: fc.oneof(fc.array(part), part), leaf: part }, { requiredKeys: [] }), part)
    fc.assert(
      fc.property(json, (hostile) => {
        try {
          const proof = decodeStateProof(hostile, 'proof')
          expect(encodeStateProof(proof)).toEqual(hostile)
        } catch (error) {
          expect(error).toBeInstanceOf(SionError)
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('a witness', () => {
  it('lets the same work be done again without the state, to the same root', () => {
    fc.assert(
      fc.property(history, history, fc.array(id, { maxLength: 4 }), (before, work, reads) => {
        const { tree } = replay(before)
        const traced = tree.traced()
        const run = (start: StateTree): unknown[] => {
          let now = start
          const seen: unknown[] = []
          for (const batch of work) {
            now = now.update(batch)
            for (const each of reads) seen.push(hex(now.get(each)), encodeStateProof(now.prove(each)))
          }
          return [...seen, hex(now.root)]
        }
        const expected = run(traced.tree)
        const partial = StateTree.fromWitness(traced.witness(), 'witness')
        expect(partial.root).toEqual(tree.root)
        expect(run(partial)).toEqual(expected)
        expect(run(tree)).toEqual(expected)
      }),
      { numRuns: 600 },
    )
  })

  it('holds nothing that was not needed: cutting any opened node makes the work fail', () => {
    fc.assert(
      fc.property(history, changes, fc.nat(), (before, batch, pick) => {
        const { tree } = replay(before)
        const traced = tree.traced()
        const after = traced.tree.update(batch).root
        const bytes = traced.witness()
        expect(StateTree.fromWitness(bytes, 'witness').update(batch).root).toEqual(after)
        const cuts = cutsOf(bytes)
        const chosen = cuts[pick % cuts.length]
        if (chosen === undefined) return
        const cut = StateTree.fromWitness(chosen, 'witness')
        expect(cut.root).toEqual(tree.root)
        expect(() => cut.update(batch)).toThrow(expect.objectContaining({ code: 'missing_witness' }))
      }),
      { numRuns: 400 },
    )
  })

  it('is refused only with our own errors when its bytes are damaged, or is a tree of another root', () => {
    const { tree } = replay([new Map(Array.from({ length: 40 }, (_, i) => [idOf(i.toString(2).padStart(6, '0')), valueOf(i)]))])
    const traced = tree.traced()
    traced.tree.update(new Map([[idOf('000011'), null], [idOf('1111'), valueOf('new')]]))
    const good = traced.witness()
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.integer({ min: 1, max: 255 }), fc.nat(2), (at, flip, how) => {
        const bad = how === 0 ? good.slice(0, at) : good.slice()
        if (how > 0) bad[at] = bad[at]! ^ flip
        try {
          expect(StateTree.fromWitness(bad, 'witness').root).not.toEqual(tree.root)
        } catch (error) {
          expect(error).toMatchObject({ code: 'invalid_input', field: 'witness' })
        }
      }),
      { numRuns: 2_000 },
    )
  })
})

/** For every node that a witness opens: the witness that gives only its hash instead. */
function cutsOf(bytes: Uint8Array): Uint8Array[] {
  const cuts: Uint8Array[] = []
  const read = (start: number): { end: number; hash: Uint8Array } => {
    const kind = bytes[start]
    if (kind === 0) return { end: start + 1, hash: new Uint8Array(32) }
    if (kind === 1) return { end: start + 33, hash: bytes.slice(start + 1, start + 33) }
    let node: { end: number; hash: Uint8Array }
    if (kind === 2) {
      node = { end: start + 65, hash: tagged('sion/state-leaf/v1', bytes.slice(start + 1, start + 65)) }
    } else {
      const left = read(start + 1)
      const right = read(left.end)
      node = { end: right.end, hash: tagged('sion/state-node/v1', left.hash, right.hash) }
    }
    cuts.push(new Uint8Array([...bytes.slice(0, start), 1, ...node.hash, ...bytes.slice(node.end)]))
    return node
  }
  read(0)
  return cuts
}
