import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SionError } from '../../../src/codec/index.js'
import { memoryStore, type Accepted } from '../../../src/desk/index.js'
import { buy, MemoryLog, payerOf, World, type Fault } from './support.js'

interface Call {
  steps: number
  fault: Fault
  together: boolean
  restart: boolean
}

const fault = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Fault>('none') },
  { weight: 1, arbitrary: fc.constantFrom<Fault>('handler fails', 'request lost', 'answer lost') },
)
const calls: fc.Arbitrary<Call[]> = fc.array(
  fc.record({ steps: fc.integer({ min: 1, max: 3 }), fault, together: fc.boolean(), restart: fc.boolean() }),
  { minLength: 1, maxLength: 60 },
)

/** Runs calls, some at once, against a desk; between them the payer may be killed and come back with its record. */
async function run(list: readonly Call[], window: number): Promise<void> {
  const world = new World()
  const stream = await world.stream(1_000)
  const desk = world.desk({ window, store: memoryStore() })
  const sold = new Set<number>()
  const served = ({ first, position }: Accepted): void => {
    for (let step = first; step <= position; step++) {
      expect(sold.has(step)).toBe(false)
      sold.add(step)
    }
  }
  let log = new MemoryLog()
  let payer = payerOf(stream, { log })
  let group: Promise<void>[] = []
  const one = async ({ steps, fault }: Call): Promise<void> => {
    try {
      await buy(payer, desk, { steps, window, fault, served })
    } catch (error) {
      // Of faults; a payer that is on its own is never refused twice, and never in conflict with an honest seller.
      if (!(error instanceof SionError)) throw error
      if (['lost', 'failed'].includes(error.code)) return
      throw error
    }
  }
  for (const call of list) {
    group.push(one(call))
    if (call.together) continue
    await Promise.all(group)
    group = []
    if (call.restart) {
      const position = log.last
      log = new MemoryLog()
      payer = payerOf(stream, { log, position })
    }
  }
  await Promise.all(group)
  // Whatever happened, a seller and a payer left alone agree after one refusal.
  const steps = list[0]?.steps ?? 1
  let refusals = 0
  for (let i = 0; i < 5; i++) refusals += (await buy(payer, desk, { steps, window, served })).refusals.length
  expect(refusals).toBeLessThanOrEqual(1)
}

describe('a payer at an honest desk', () => {
  it('never loses its way without a window, whatever fails and whenever it restarts', async () => {
    await fc.assert(fc.asyncProperty(calls, (list) => run(list, 0)), { numRuns: 150 })
  })

  it('nor with a window of 64', async () => {
    await fc.assert(fc.asyncProperty(calls, (list) => run(list, 64)), { numRuns: 150 })
  })
})
