import * as fc from 'fast-check'
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { InputError } from '../../src/codec/index.js'
import { checkpointCount, checkpointEntry, walkDown } from '../../src/crypto/chain-step.js'
import { EMPTY_LOG_ROOT, leafHash, verifyInclusion } from '../../src/merkle/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'

const seed = new Uint8Array(32).fill(5)
const salt = new Uint8Array(16).fill(6)

/** Every element, hashed by node:crypto from the chain's own top. */
function allElements(chain: PayerChain): Uint8Array[] {
  const elements: Uint8Array[] = []
  let element = chain.reveal(chain.length)
  for (let position = chain.length; position >= 0; position--) {
    elements[position] = element
    const index = new Uint8Array(4)
    new DataView(index.buffer).setUint32(0, position)
    element = new Uint8Array(createHash('sha256').update(salt).update(index).update(element).digest())
  }
  return elements
}

describe("a payer's chain", () => {
  for (const length of [1, 2, 63, 64, 65, 127, 128, 129, 1_000]) {
    it(`reveals each of ${length} elements, and they walk down to the anchor`, async () => {
      const elements = allElements(await PayerChain.build({ seed, salt, length }))
      const chain = await PayerChain.build({ seed, salt, length })
      expect(chain.anchor).toEqual(elements[0])
      for (let position = 1; position <= length; position++) expect(chain.reveal(position)).toEqual(elements[position])
    })
  }

  it('costs at most one hash a reveal in ascending order, from wherever it starts', async () => {
    for (const next of [1, 2, 40, 63, 64, 65, 100, 127, 128, 640, 999]) {
      const chain = await PayerChain.build({ seed, salt, length: 1_000 }, { next })
      for (let position = next; position <= 1_000; position++) {
        const before = chain.hashed
        chain.reveal(position)
        expect(chain.hashed - before).toBeLessThanOrEqual(1)
      }
    }
  })

  it('costs at most k hashes for a reveal k positions on', async () => {
    for (const stride of [2, 3, 7, 64, 100]) {
      const chain = await PayerChain.build({ seed, salt, length: 2_000 })
      for (let position = stride; position <= 2_000; position += stride) {
        const before = chain.hashed
        chain.reveal(position)
        expect(chain.hashed - before).toBeLessThanOrEqual(Math.max(stride, 126))
      }
    }
  })

  it('costs nothing to go back across a checkpoint, and goes on without a burst', async () => {
    const chain = await PayerChain.build({ seed, salt, length: 1_000 })
    for (let position = 1; position <= 130; position++) chain.reveal(position)
    const before = chain.hashed
    for (let position = 120; position <= 130; position++) chain.reveal(position)
    expect(chain.hashed - before).toBeLessThanOrEqual(11)
    for (let position = 131; position <= 1_000; position++) {
      const hashed = chain.hashed
      chain.reveal(position)
      expect(chain.hashed - hashed).toBeLessThanOrEqual(1)
    }
  })

  it('reveals in any order what it reveals in ascending order', async () => {
    const reference = allElements(await PayerChain.build({ seed, salt, length: 500 }))
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 501 }),
        fc.array(fc.integer({ min: 1, max: 500 }), { minLength: 1, maxLength: 60 }),
        async (next, positions) => {
          const chain = await PayerChain.build({ seed, salt, length: 500 }, { next })
          for (const position of positions) {
            const before = chain.hashed
            expect(chain.reveal(position)).toEqual(reference[position])
            // 63 for the segment, and what is computed ahead.
            expect(chain.hashed - before).toBeLessThanOrEqual(126)
          }
        },
      ),
      { numRuns: 60 },
    )
  })

  it('proves each checkpoint at or below a position under its root, and has none below the first', async () => {
    const length = 1_000
    const chain = await PayerChain.build({ seed, salt, length })
    for (let position = 1; position < 64; position++) expect(chain.jump(position)).toBeUndefined()
    for (let position = 64; position <= length; position++) {
      const jump = chain.jump(position)
      expect(jump?.index).toBe(Math.floor(position / 64))
      if (jump === undefined) continue
      const element = walkDown(salt, position, chain.reveal(position), jump.index * 64)
      const leaf = leafHash(checkpointEntry(jump.index, element))
      expect(verifyInclusion(chain.checkpointRoot, checkpointCount(length), jump.index - 1, leaf, jump.path)).toBe(true)
    }
  })

  it('has the root of an empty tree when it is too short for a checkpoint', async () => {
    const chain = await PayerChain.build({ seed, salt, length: 63 })
    expect(chain.checkpointRoot).toEqual(EMPTY_LOG_ROOT)
  })

  it('shares no element with a chain of another salt, seed or length', async () => {
    const one = await PayerChain.build({ seed, salt, length: 100 })
    const others = await Promise.all([
      PayerChain.build({ seed: new Uint8Array(32).fill(9), salt, length: 100 }),
      PayerChain.build({ seed, salt: new Uint8Array(16).fill(9), length: 100 }),
      PayerChain.build({ seed, salt, length: 101 }),
    ])
    for (const other of others) {
      expect(other.anchor).not.toEqual(one.anchor)
      expect(other.reveal(100)).not.toEqual(one.reveal(100))
    }
  })

  it('reports progress up to the end and lets timers run while it walks', async () => {
    const seen: number[] = []
    let timers = 0
    const timer = setInterval(() => timers++, 0)
    await PayerChain.build({ seed, salt, length: 200_000 }, { onProgress: (done) => seen.push(done) })
    clearInterval(timer)
    expect(seen.length).toBeGreaterThan(3)
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(seen.at(-1)).toBe(200_000)
    expect(timers).toBeGreaterThan(2)
  })

  it('refuses shapes and positions that no chain has', async () => {
    for (const length of [0, -1, 1.5, Number.NaN, 2 ** 32]) {
      await expect(PayerChain.build({ seed, salt, length })).rejects.toThrow(InputError)
    }
    await expect(PayerChain.build({ seed: new Uint8Array(31), salt, length: 1 })).rejects.toThrow(InputError)
    await expect(PayerChain.build({ seed, salt: new Uint8Array(15), length: 1 })).rejects.toThrow(InputError)
    await expect(PayerChain.build({ seed, salt, length: 10 }, { next: 12 })).rejects.toThrow(InputError)
    const chain = await PayerChain.build({ seed, salt, length: 10 }, { next: 11 })
    for (const position of [0, -1, 11, 1.5, Number.NaN]) {
      expect(() => chain.reveal(position)).toThrow(InputError)
      expect(() => chain.jump(position)).toThrow(InputError)
    }
  })
})
