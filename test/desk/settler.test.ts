import { afterEach, describe, expect, it } from 'vitest'
import { Settler, type Accepted, type SettlerOptions, type StreamDesk } from '../../src/desk/index.js'
import { bestWay } from '../../src/desk/settle-plan.js'
import { WALK_LIMIT } from '../../src/ledger/index.js'
import { accepted, STEP, World, type Payer } from './world.js'

const settlers: Settler[] = []
afterEach(async () => {
  for (const settler of settlers.splice(0)) await settler.stop()
})

function settlerOf(desk: StreamDesk, options: Partial<SettlerOptions> = {}): Settler {
  const settler = new Settler({ desk, shutdownSeconds: 0, ...options })
  settlers.push(settler)
  return settler
}

async function serve(desk: StreamDesk, payer: Payer, from: number, to: number): Promise<void> {
  for (let position = from; position <= to; position++) {
    accepted(await desk.accept(payer.payWithJump(position), STEP)).finish()
  }
}

describe('settling is due', () => {
  it('when a stream has settleEvery unsettled steps, not one before', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 100 })
    const settler = settlerOf(desk)
    const payer = await world.stream()
    await serve(desk, payer, 1, 99)
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    await serve(desk, payer, 100, 100)
    expect((await settler.settleDue()).transactions).toMatchObject([{ streams: 1, steps: 100, refused: 0 }])
    expect(world.ledger.get(payer.id).settled).toBe(100)
  })

  it('when its oldest unsettled payment is settleAfter seconds old, not a millisecond before', async () => {
    const world = new World()
    const desk = world.desk({ settleAfterSeconds: 30 })
    const settler = settlerOf(desk)
    const payer = await world.stream()
    await serve(desk, payer, 1, 3)
    world.clock.time += 29_999
    await serve(desk, payer, 4, 5)
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    world.clock.time += 1
    await settler.settleDue()
    expect(world.ledger.get(payer.id).settled).toBe(5)
    await serve(desk, payer, 6, 6)
    world.clock.time += 29_999
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    world.clock.time += 1
    await settler.settleDue()
    expect(world.ledger.get(payer.id).settled).toBe(6)
  })

  it('when it is within twice the margin of its last Pulse, not one before', async () => {
    const world = new World()
    const desk = world.desk({ margin: 10 })
    const settler = settlerOf(desk)
    const payer = await world.stream(100, { lastPulse: 121 })
    world.ledger.pulse = 100
    await serve(desk, payer, 1, 2)
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    world.ledger.pulse = 101
    await settler.settleDue()
    expect(world.ledger.get(payer.id).settled).toBe(2)
  })

  it('on shutdown', async () => {
    const world = new World()
    const desk = world.desk()
    const settler = new Settler({ desk })
    settler.start()
    const payer = await world.stream()
    await serve(desk, payer, 1, 7)
    await settler.stop()
    expect(world.ledger.get(payer.id).settled).toBe(7)
  })

  it('by itself, soon after the step that made it due', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 10 })
    let settled = (): void => {}
    const once = new Promise<void>((resolve) => {
      settled = resolve
    })
    const settler = settlerOf(desk, { gatherMs: 1, pollMs: 60_000, onTransaction: () => settled() })
    settler.start()
    await settler.settleDue()
    await serve(desk, await world.stream(), 1, 10)
    await once
  })
})

describe('a settle transaction', () => {
  it('holds many streams, and a million steps over a thousand streams take four', async () => {
    const world = new World()
    // A thousand chains of a thousand elements: the desk only ever sees the last payments of each.
    const desk = world.desk({ settleEvery: 1_000 })
    const settler = settlerOf(desk)
    const streams: Payer[] = []
    for (let stream = 0; stream < 1_000; stream++) {
      const payer = await world.stream(1_000)
      streams.push(payer)
      for (let position = 250; position <= 1_000; position += 250) {
        accepted(await desk.accept(payer.payWithJump(position, 250), 250n * STEP)).finish()
      }
    }
    const { transactions, problems } = await settler.settleDue()
    expect(problems).toEqual([])
    expect(transactions).toHaveLength(4)
    expect(transactions.reduce((steps, transaction) => steps + transaction.steps, 0)).toBe(1_000_000)
    for (const payer of streams) expect(world.ledger.get(payer.id).settled).toBe(1_000)
    const pathNodes = 5
    expect(world.ledger.hashes).toBeLessThanOrEqual(1_000 * (63 + pathNodes))
  })

  it('settles what a walk cannot reach in several, one after the other, where no path is kept', async () => {
    const world = new World()
    const desk = world.desk()
    const settler = settlerOf(desk)
    const payer = await world.stream(10_000)
    const running: Accepted[] = []
    for (let position = 64; position <= 10_000; position += 64) {
      running.push(accepted(await desk.accept(payer.payWithJump(position, 64), 64n * STEP)))
    }
    // Kept are the paths of checkpoints 1 to 31 and of the last one, whose handler still runs.
    const last = running.pop()!
    for (const payment of running) payment.finish()
    const { transactions, problems } = await settler.settleAll([payer.id])
    expect(problems).toEqual([])
    expect(transactions.map(({ steps, hashes }) => [steps, hashes])).toEqual([
      [4_096, 4_096],
      [4_096, 4_096],
      [1_728, 1_728],
    ])
    last.finish()
    expect((await settler.settleAll([payer.id])).transactions).toMatchObject([{ steps: 64 }])
    expect(world.ledger.get(payer.id).settled).toBe(9_984)
  })

  it('settles as far by jump at once, where the last path is served', async () => {
    const world = new World()
    const desk = world.desk()
    const settler = settlerOf(desk)
    const payer = await world.stream(10_000)
    for (let position = 2_500; position <= 10_000; position += 2_500) {
      accepted(await desk.accept(payer.payWithJump(position, 2_500), 2_500n * STEP)).finish()
    }
    const { transactions } = await settler.settleDue()
    expect(transactions.map(({ steps }) => steps)).toEqual([10_000])
  })

  it('stays within its hashes', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 1 })
    const settler = settlerOf(desk, { hashesPerTransaction: 100 })
    for (let stream = 0; stream < 5; stream++) await serve(desk, await world.stream(), 1, 40)
    const { transactions } = await settler.settleDue()
    expect(transactions.map(({ streams, hashes }) => [streams, hashes])).toEqual([
      [2, 80],
      [2, 80],
      [1, 40],
    ])
  })
})

describe('several servers on one store', () => {
  it('settle a stream from one of them', async () => {
    const world = new World()
    const desks = [world.desk({ settleEvery: 10 }), world.desk({ settleEvery: 10 })]
    const payer = await world.stream()
    await serve(desks[0]!, payer, 1, 10)
    await Promise.all(desks.map((desk) => settlerOf(desk).settleDue()))
    expect(world.ledger.transactions).toHaveLength(1)
    expect(world.ledger.get(payer.id).settled).toBe(10)
  })

  it('take over from one that died holding its lease', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 10 })
    const payer = await world.stream()
    await serve(desk, payer, 1, 10)
    await desk.stop()
    await world.store.lease(payer.id, 'dead', { now: world.clock.time, milliseconds: 60_000 })
    const settler = settlerOf(world.desk({ settleEvery: 10 }))
    world.clock.time += 59_999
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    world.clock.time += 1
    expect((await settler.settleDue()).transactions).toHaveLength(1)
  })
})

describe('when the ledger is away', () => {
  it('nothing is lost, and the next pass settles it', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 10 })
    const settler = settlerOf(desk)
    const payer = await world.stream()
    await serve(desk, payer, 1, 10)
    world.ledger.mood = 'away'
    await expect(settler.settleDue()).rejects.toThrow('out of reach')
    await serve(desk, payer, 11, 20)
    world.ledger.mood = 'well'
    await settler.settleDue()
    expect(world.ledger.get(payer.id).settled).toBe(20)
  })

  it('an answer that was lost costs nothing: the position is not paid twice', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 10 })
    const settler = settlerOf(desk)
    const payer = await world.stream()
    await serve(desk, payer, 1, 10)
    world.ledger.mood = 'deaf'
    await expect(settler.settleDue()).rejects.toThrow('lost')
    expect(world.ledger.get(payer.id).settled).toBe(10)
    world.ledger.mood = 'well'
    const { transactions, problems } = await settler.settleDue()
    expect(problems).toEqual([])
    expect(transactions).toMatchObject([{ steps: 0, refused: 0 }])
    expect(await desk.status(payer.id)).toMatchObject({ settled: 10, unsettled: 0 })
    expect(await world.store.due({ at: 1e15, pulse: 1e15 }, 9)).toEqual([])
  })

  it('is said, and loudly once a stream nears its end', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 1 })
    const settler = settlerOf(desk, { pollMs: 1, gatherMs: 0 })
    const payer = await world.stream(100, { lastPulse: 130 })
    world.ledger.pulse = 100
    await serve(desk, payer, 1, 1)
    world.ledger.mood = 'away'
    settler.start()
    while (world.log.at('warn').length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(world.log.at('error')).toEqual([])
    // Ten Pulses at the fastest, as far as the desk can tell.
    world.clock.time += 60_000
    desk.sawPulse(115, world.clock.time)
    await serve(desk, payer, 2, 2)
    while (world.log.at('error').length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    expect(world.log.at('error')[0]).toContain('near their last Pulse')
    world.ledger.mood = 'well'
  })
})

describe('a stream the ledger will not settle', () => {
  it('does not hold up the others, and is tried again with pauses', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 5 })
    const settler = settlerOf(desk)
    const [bad, good] = [await world.stream(), await world.stream()]
    await serve(desk, bad, 1, 5)
    await serve(desk, good, 1, 5)
    world.ledger.get(bad.id).settledElement = new Uint8Array(32)
    const { problems } = await settler.settleDue()
    expect(problems).toEqual([{ stream: bad.id, reason: 'wrong_element' }])
    expect(world.ledger.get(good.id).settled).toBe(5)
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    world.ledger.get(bad.id).settledElement = bad.chain.anchor
    world.clock.time += 1_000
    expect((await settler.settleDue()).transactions).toMatchObject([{ steps: 5 }])
  })

  it('is forgotten when it is closed, and what is lost by that is said', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 5 })
    const settler = settlerOf(desk)
    const payer = await world.stream()
    await serve(desk, payer, 1, 5)
    world.ledger.get(payer.id).state = 'closed'
    expect((await settler.settleDue()).problems).toMatchObject([{ stream: payer.id }])
    expect(world.log.at('error').join()).toContain('5 steps unsettled')
    expect(await desk.status(payer.id)).toBeUndefined()
  })

  it('is not settled for steps in flight, and stays due for them', async () => {
    const world = new World()
    const desk = world.desk({ settleEvery: 3 })
    const settler = settlerOf(desk)
    const payer = await world.stream()
    await serve(desk, payer, 1, 2)
    const running = accepted(await desk.accept(payer.pay(3), STEP))
    await settler.settleDue()
    expect(world.ledger.get(payer.id).settled).toBe(2)
    world.clock.time += 30_000
    expect((await settler.settleDue()).transactions).toHaveLength(0)
    running.finish()
    await settler.settleDue()
    expect(world.ledger.get(payer.id).settled).toBe(3)
  })
})

describe('the way a settlement takes', () => {
  const jump = (index: number, nodes = 4) => ({ index, path: Array.from({ length: nodes }, () => new Uint8Array(32)) })

  it('is a walk where there is no jump, at most as long as a walk may be', () => {
    expect(bestWay(0, 4_096, [])).toEqual({ position: 4_096, hashes: 4_096 })
    expect(bestWay(0, 4_097, [])).toEqual({ position: 4_096, hashes: 4_096 })
    expect(bestWay(10, 11, [])).toEqual({ position: 11, hashes: 1 })
    expect(bestWay(10, 10, [])).toBeUndefined()
    expect(bestWay(10, 10_000, [])).toEqual({ position: 10 + WALK_LIMIT, hashes: WALK_LIMIT })
    expect(WALK_LIMIT).toBe(4_096)
  })

  it('covers by walks, one after the other, what no jump does', () => {
    const steps: number[] = []
    for (let settled = 0, way = bestWay(0, 10_000, []); way !== undefined; way = bestWay(settled, 10_000, [])) {
      steps.push(way.position - settled)
      settled = way.position
    }
    expect(steps).toEqual([4_096, 4_096, 1_808])
  })

  it('is a jump where that is fewer hashes for the same steps, and a walk at equality', () => {
    expect(bestWay(0, 70, [jump(1)])).toMatchObject({ position: 70, hashes: 6 + 5, jump: { index: 1 } })
    // 5 steps, or a checkpoint with 4 nodes and its leaf.
    expect(bestWay(59, 64, [jump(1)])).toEqual({ position: 64, hashes: 5 })
    expect(bestWay(58, 64, [jump(1)])).toMatchObject({ position: 64, hashes: 5, jump: { index: 1 } })
  })

  it('is a jump where that covers more steps than a walk may, at most 63 past the checkpoint', () => {
    expect(bestWay(0, 10_000, [jump(156)])).toMatchObject({ position: 10_000, hashes: 16 + 5 })
    expect(bestWay(0, 10_000, [jump(100)])).toMatchObject({ position: 6_463, hashes: 63 + 5 })
    expect(bestWay(0, 10_000, [jump(63)])).toEqual({ position: 4_096, hashes: 4_096 })
  })

  it('leaves out checkpoints at or below what is settled, and above what was served', () => {
    expect(bestWay(64, 70, [jump(1), jump(2)])).toEqual({ position: 70, hashes: 6 })
  })
})
