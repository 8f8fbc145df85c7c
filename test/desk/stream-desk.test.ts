import { describe, expect, it } from 'vitest'
import type { DeskStore } from '../../src/desk/index.js'
import { memoryStore } from '../../src/desk/index.js'
import { accepted, PAYEE, refused, STEP, World } from './world.js'

/** A memory store that counts, and that fails or stalls when told. */
function faultyStore() {
  const inner = memoryStore()
  const faults = {
    loads: 0,
    swaps: 0,
    down: false,
    /** Applies swaps, and then loses the answer. */
    deaf: false,
    gate: undefined as Promise<void> | undefined,
  }
  const store: DeskStore = {
    ...inner,
    async load(stream) {
      faults.loads++
      if (faults.down) throw Object.assign(new Error('down'), { code: 'store_unavailable' })
      return inner.load(stream)
    },
    async swap(change) {
      faults.swaps++
      await faults.gate
      if (faults.down) throw Object.assign(new Error('down'), { code: 'store_unavailable' })
      const result = await inner.swap(change)
      if (faults.deaf) throw Object.assign(new Error('answer lost'), { code: 'store_unavailable' })
      return result
    },
  }
  return { store, faults }
}

describe('a desk with strict positions', () => {
  it('accepts one step after the other, and tells who paid', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    for (let position = 1; position <= 130; position++) {
      const payment = accepted(await desk.accept(payer.payWithJump(position), STEP))
      expect(payment).toMatchObject({ stream: payer.id, payer: 'aa'.repeat(32), first: position, position })
      payment.finish()
    }
    expect(world.ledger.reads).toBe(1)
  })

  it('accepts a price of several steps at the position of its last step', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    expect(accepted(await desk.accept(payer.pay(5), 5n * STEP))).toMatchObject({ first: 1, position: 5 })
    expect(accepted(await desk.accept(payer.pay(8), 3n * STEP))).toMatchObject({ first: 6, position: 8 })
    expect(refused(await desk.accept(payer.pay(9), 2n * STEP))).toMatchObject({ code: 'wrong_position', position: 8 })
  })

  it('refuses another position in the words of the reference, with the one it accepted up to', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    for (let position = 1; position <= 6; position++) accepted(await desk.accept(payer.pay(position), STEP))
    expect(refused(await desk.accept(payer.pay(8), STEP))).toEqual({
      accepted: false,
      code: 'wrong_position',
      reason: 'expected the element at position 7, not 8',
      position: 6,
    })
    expect(refused(await desk.accept(payer.pay(6), STEP))).toMatchObject({ code: 'wrong_position', position: 6 })
    accepted(await desk.accept(payer.pay(7), STEP))
  })

  it('sells a step once to sixty-four at the same instant', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    const verdicts = await Promise.all(Array.from({ length: 64 }, () => desk.accept(payer.pay(1), STEP)))
    expect(verdicts.filter((verdict) => verdict.accepted)).toHaveLength(1)
    for (const verdict of verdicts) if (!verdict.accepted) expect(verdict.code).toBe('wrong_position')
  })

  it('sells a step once on two desks that share a store, whichever is asked', async () => {
    const world = new World()
    const desks = [world.desk(), world.desk()]
    const payer = await world.stream()
    for (let position = 1; position <= 40; position++) {
      const verdicts = await Promise.all(
        Array.from({ length: 6 }, (_, at) => desks[(at + position) % 2]!.accept(payer.pay(position), STEP)),
      )
      expect(verdicts.filter((verdict) => verdict.accepted)).toHaveLength(1)
    }
  })

  it('does not refuse from memory what another server on the store moved on', async () => {
    const world = new World()
    const [one, two] = [world.desk(), world.desk()]
    const payer = await world.stream()
    accepted(await one.accept(payer.pay(1), STEP))
    accepted(await two.accept(payer.pay(2), STEP))
    accepted(await one.accept(payer.pay(3), STEP))
    accepted(await two.accept(payer.pay(4), STEP))
  })
})

describe('a handler that fails', () => {
  it('leaves the buyer its step: the same element is good again, and only what was served counts', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(1), STEP)).finish()
    await accepted(await desk.accept(payer.pay(2), STEP)).fail()
    expect(await desk.status(payer.id)).toMatchObject({ sold: 1, inFlight: 0 })
    expect((await desk.plan(payer.id))?.item.position).toBe(1)
    expect(refused(await desk.accept(payer.pay(3), STEP))).toMatchObject({ code: 'wrong_position', position: 1 })
    accepted(await desk.accept(payer.pay(2), STEP)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(2)
  })

  it('leaves a hole that is sold next, while later steps stay sold', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    const second = [1, 2, 3, 4, 5].map(async (position) => accepted(await desk.accept(payer.pay(position), STEP)))
    const payments = await Promise.all(second)
    await payments[1]!.fail()
    for (const payment of payments) payment.finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(4)
    expect(refused(await desk.accept(payer.pay(6), STEP))).toMatchObject({ position: 1 })
    accepted(await desk.accept(payer.pay(2), STEP)).finish()
    expect(refused(await desk.accept(payer.pay(3), STEP))).toMatchObject({ position: 5 })
    accepted(await desk.accept(payer.pay(6), STEP)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(6)
  })

  it('does not block a stream with a hole too narrow for the price', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    const one = accepted(await desk.accept(payer.pay(1), STEP))
    accepted(await desk.accept(payer.pay(4), 3n * STEP)).finish()
    await one.fail()
    expect(refused(await desk.accept(payer.pay(3), 3n * STEP))).toMatchObject({
      reason: 'expected the element at position 7, not 3',
      position: 4,
    })
    accepted(await desk.accept(payer.pay(7), 3n * STEP)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(6)
    accepted(await desk.accept(payer.pay(1), STEP)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(7)
  })

  it('gives up a hole that lies too deep to check cheaply, and never charges for it', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    const first = accepted(await desk.accept(payer.pay(1), STEP))
    for (let position = 2; position <= 200; position++) accepted(await desk.accept(payer.payWithJump(position), STEP)).finish()
    await first.fail()
    accepted(await desk.accept(payer.pay(201), STEP)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(200)
    expect(await desk.status(payer.id)).toMatchObject({ sold: 200, tip: 201 })
  })

  it('stays sold if the ledger has paid for it meanwhile, whoever settled', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    const payment = accepted(await desk.accept(payer.pay(1), STEP))
    await world.ledger.settle([{ stream: payer.id, position: 1, element: payer.chain.reveal(1) }])
    await desk.recordSettled(payer.id, 1, world.clock.time)
    await payment.fail()
    expect(await desk.status(payer.id)).toMatchObject({ sold: 1, settled: 1, unsettled: 0 })
    expect(refused(await desk.accept(payer.pay(1), STEP))).toMatchObject({ position: 1 })
  })

  it('counts finish and fail once, whichever comes first', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    const payment = accepted(await desk.accept(payer.pay(1), STEP))
    payment.finish()
    await payment.fail()
    expect(await desk.status(payer.id)).toMatchObject({ sold: 1 })
  })
})

describe('what may be settled', () => {
  it('leaves out steps whose handlers still run, on any server', async () => {
    const world = new World()
    const [one, two] = [world.desk(), world.desk()]
    const payer = await world.stream()
    accepted(await one.accept(payer.pay(1), STEP)).finish()
    const running = accepted(await one.accept(payer.pay(2), STEP))
    expect((await one.plan(payer.id))?.item.position).toBe(1)
    expect((await two.plan(payer.id))?.item.position).toBe(1)
    running.finish()
    expect((await one.plan(payer.id))?.item.position).toBe(2)
    // The other server learns it with the next write.
    accepted(await one.accept(payer.pay(3), STEP))
    expect((await two.plan(payer.id))?.item.position).toBe(2)
  })

  it('counts as served what a dead server had in flight, once its lease ran out', async () => {
    const world = new World()
    const [dead, alive] = [world.desk({ leaseSeconds: 30 }), world.desk({ leaseSeconds: 30 })]
    const payer = await world.stream()
    accepted(await dead.accept(payer.pay(1), STEP)).finish()
    const running = accepted(await dead.accept(payer.pay(2), STEP))
    world.clock.time += 29_999
    expect((await alive.plan(payer.id))?.item.position).toBe(1)
    world.clock.time += 1
    expect((await alive.plan(payer.id))?.item.position).toBe(2)
    // It was only slow: what was counted as served stays sold.
    await running.fail()
    expect(await alive.status(payer.id)).toMatchObject({ sold: 2 })
  })

  it('waits as long as a living server says that its handler runs', async () => {
    const world = new World()
    const [busy, other] = [world.desk({ leaseSeconds: 30 }), world.desk({ leaseSeconds: 30 })]
    const payer = await world.stream()
    const running = accepted(await busy.accept(payer.pay(1), STEP))
    for (let round = 0; round < 10; round++) {
      world.clock.time += 15_000
      await busy.tidy()
      expect(await other.plan(payer.id)).toBeUndefined()
    }
    await running.fail()
    expect(await other.status(payer.id)).toMatchObject({ sold: 0 })
  })

  it('is written by housekeeping when no further payment comes', async () => {
    const world = new World()
    const [one, two] = [world.desk({ settleAfterSeconds: 4 }), world.desk()]
    const payer = await world.stream()
    accepted(await one.accept(payer.pay(1), STEP)).finish()
    await one.tidy()
    expect(await two.plan(payer.id)).toBeUndefined()
    world.clock.time += 2_000
    await one.tidy()
    expect((await two.plan(payer.id))?.item.position).toBe(1)
  })

  it('is by jump where that takes fewer hashes, with an element a few below the tip', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(2_000)
    for (let position = 1; position <= 1_000; position++) accepted(await desk.accept(payer.payWithJump(position), STEP)).finish()
    const running = accepted(await desk.accept(payer.payWithJump(1_001), STEP))
    const plan = await desk.plan(payer.id)
    expect(plan?.item).toMatchObject({ position: 1_000, jump: { index: 15 } })
    expect(plan?.hashes).toBe(40 + 5 + 1)
    expect(await world.ledger.settle([plan!.item])).toMatchObject({ results: [{ settled: 1_000 }] })
    running.finish()
  })
})

describe('the desk and its store', () => {
  it('writes once a payment, and once for all that came while a write was under way', async () => {
    const world = new World()
    const { store, faults } = faultyStore()
    const desk = world.desk({ store, window: 100 })
    const payer = await world.stream()
    for (let position = 1; position <= 20; position++) accepted(await desk.accept(payer.pay(position), STEP)).finish()
    expect(faults).toMatchObject({ loads: 1, swaps: 20 })
    let open = (): void => {}
    faults.gate = new Promise((resolve) => {
      open = resolve
    })
    const payments = Array.from({ length: 60 }, (_, at) => desk.accept(payer.payUntilTold(21 + at, { window: true }), STEP))
    open()
    for (const payment of await Promise.all(payments)) accepted(payment).finish()
    expect(faults.swaps).toBeLessThanOrEqual(22)
    expect(faults.loads).toBe(1)
  })

  it('is durable before it is accepted', async () => {
    const world = new World()
    const { store, faults } = faultyStore()
    const desk = world.desk({ store })
    const payer = await world.stream()
    let open = (): void => {}
    faults.gate = new Promise((resolve) => {
      open = resolve
    })
    let done = false
    const payment = desk.accept(payer.pay(1), STEP).then((verdict) => {
      done = true
      return verdict
    })
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    expect(done).toBe(false)
    expect(await desk.status(payer.id)).toBeUndefined()
    open()
    accepted(await payment)
    expect(await desk.status(payer.id)).toMatchObject({ sold: 1 })
  })

  it('rejects and accepts nothing while the store is down, and takes the same payment when it is back', async () => {
    const world = new World()
    const { store, faults } = faultyStore()
    const desk = world.desk({ store })
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(1), STEP)).finish()
    faults.down = true
    await expect(desk.accept(payer.pay(2), STEP)).rejects.toMatchObject({ code: 'store_unavailable' })
    faults.down = false
    expect(await desk.status(payer.id)).toMatchObject({ sold: 1 })
    accepted(await desk.accept(payer.pay(2), STEP))
  })

  it('takes back what a write sold whose answer was lost', async () => {
    const world = new World()
    const { store, faults } = faultyStore()
    const desk = world.desk({ store })
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(1), STEP)).finish()
    faults.deaf = true
    await expect(desk.accept(payer.pay(2), STEP)).rejects.toMatchObject({ code: 'store_unavailable' })
    expect(await desk.status(payer.id)).toMatchObject({ sold: 2 })
    faults.deaf = false
    await desk.tidy()
    expect(await desk.status(payer.id)).toMatchObject({ sold: 1 })
    accepted(await desk.accept(payer.pay(2), STEP)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(2)
  })

  it('takes back a failed step later, if the store was away when its handler failed', async () => {
    const world = new World()
    const { store, faults } = faultyStore()
    const desk = world.desk({ store })
    const payer = await world.stream()
    const payment = accepted(await desk.accept(payer.pay(1), STEP))
    faults.down = true
    await payment.fail()
    faults.down = false
    await desk.tidy()
    expect(await desk.status(payer.id)).toMatchObject({ sold: 0 })
    accepted(await desk.accept(payer.pay(1), STEP))
  })

  it('goes on from the ledger, loudly, when that has settled more than the store knows', async () => {
    const world = new World()
    const payer = await world.stream()
    const first = world.desk()
    for (let position = 1; position <= 50; position++) accepted(await first.accept(payer.pay(position), STEP)).finish()
    const plan = await first.plan(payer.id)
    await world.ledger.settle([plan!.item])
    world.store = memoryStore()
    const second = world.desk()
    expect(refused(await second.accept(payer.pay(1), STEP))).toMatchObject({ code: 'wrong_position', position: 50 })
    accepted(await second.accept(payer.pay(51), STEP)).finish()
    expect(world.log.at('error').join()).toContain('settled stream')
    expect((await second.plan(payer.id))?.item.position).toBe(51)
  })

  it('stops with everything written', async () => {
    const world = new World()
    const desk = world.desk()
    desk.start()
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(1), STEP)).finish()
    await desk.stop()
    expect(await world.desk().status(payer.id)).toMatchObject({ sold: 1, inFlight: 0 })
  })

  it('accepts nothing on a stream that any server began to close', async () => {
    const world = new World()
    const [one, two] = [world.desk(), world.desk()]
    const payer = await world.stream()
    accepted(await one.accept(payer.pay(1), STEP)).finish()
    await two.beginClosing(payer.id)
    expect(refused(await one.accept(payer.pay(2), STEP)).code).toBe('stream_closing')
    expect((await one.plan(payer.id))?.item.position).toBe(1)
    await one.forget(payer.id)
    expect(await two.status(payer.id)).toBeUndefined()
    expect(world.log.at('error').join()).toContain('1 steps unsettled')
  })

  it('begins no new tab from memory for a stream that another server closed and forgot', async () => {
    const world = new World()
    const [one, two] = [world.desk(), world.desk()]
    const payer = await world.stream()
    for (let position = 1; position <= 5; position++) accepted(await one.accept(payer.pay(position), STEP)).finish()
    const plan = await two.plan(payer.id)
    await world.ledger.settle([plan!.item])
    await two.recordSettled(payer.id, 5, plan!.at)
    world.ledger.get(payer.id).state = 'closed'
    await two.forget(payer.id)
    world.clock.time += 1_000
    expect(refused(await one.accept(payer.pay(6), STEP)).code).toBe('stream_closed')
    expect(refused(await one.accept(payer.pay(1), STEP)).code).toBe('stream_closed')
  })
})

describe('a desk with a window', () => {
  it('takes requests in any order without a refusal', async () => {
    const world = new World()
    const desk = world.desk({ window: 32 })
    const payer = await world.stream()
    for (let round = 0; round < 10; round++) {
      const positions = Array.from({ length: 32 }, (_, at) => 32 * round + ((at * 7 + round) % 32) + 1)
      const payments = positions.map((position) => payer.payUntilTold(position, { window: true }))
      const verdicts = await Promise.all(payments.map((payment) => desk.accept(payment, STEP)))
      for (const verdict of verdicts) accepted(verdict).finish()
      for (const payment of payments) payer.told(payment)
    }
    expect((await desk.plan(payer.id))?.item.position).toBe(320)
  })

  it('takes exactly up to the window above the floor, and names the floor and what is unused', async () => {
    const world = new World()
    const desk = world.desk({ window: 8 })
    const payer = await world.stream()
    const pay = (position: number) => desk.accept(payer.pay(position, { window: true }), STEP)
    expect(refused(await pay(9))).toMatchObject({ code: 'outside_window', floor: 0, unused: [[1, 8]] })
    accepted(await pay(8))
    accepted(await pay(3))
    expect(refused(await pay(3))).toEqual({
      accepted: false,
      code: 'already_used',
      reason: 'step 3 was used before',
      position: 0,
      floor: 0,
      unused: [
        [1, 2],
        [4, 7],
      ],
    })
    accepted(await pay(1))
    expect(refused(await pay(10))).toMatchObject({ code: 'outside_window', floor: 1 })
    accepted(await pay(9))
    expect(refused(await pay(1))).toMatchObject({ code: 'already_used', floor: 1 })
  })

  it('refuses a price whose steps are used in part', async () => {
    const world = new World()
    const desk = world.desk({ window: 16 })
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(5, { window: true }), STEP))
    expect(refused(await desk.accept(payer.pay(6, { window: true }), 3n * STEP))).toMatchObject({
      code: 'already_used',
      reason: 'steps 4 to 6 were used before',
    })
    accepted(await desk.accept(payer.pay(4, { window: true }), 3n * STEP))
  })

  it('is strict with a client that does not ask for it', async () => {
    const world = new World()
    const desk = world.desk({ window: 32 })
    const payer = await world.stream()
    expect(refused(await desk.accept(payer.pay(2), STEP))).toMatchObject({ code: 'wrong_position', position: 0 })
    accepted(await desk.accept(payer.pay(2, { window: true }), STEP))
    accepted(await desk.accept(payer.pay(1), STEP))
    accepted(await desk.accept(payer.pay(3), STEP))
  })

  it('goes on past holes that no price fits', async () => {
    const world = new World()
    const desk = world.desk({ window: 6 })
    const payer = await world.stream()
    const pay = (position: number, steps: bigint) => desk.accept({ ...payer.payWithJump(position, Number(steps)), window: true }, steps * STEP)
    accepted(await pay(2, 1n))
    accepted(await pay(4, 1n))
    accepted(await pay(6, 1n))
    // Unused are 1, 3 and 5: two in a row begin at 7.
    accepted(await pay(8, 2n))
    for (let position = 10; position <= 300; position += 2) accepted(await pay(position, 2n)).finish()
  })
})

describe('who is paid', () => {
  it('can be said with each payment: one desk for many sellers', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(100, { payee: 'cc'.repeat(32) })
    expect(refused(await desk.accept(payer.pay(1), STEP)).code).toBe('wrong_payee')
    accepted(await desk.accept(payer.pay(1), STEP, 'cc'.repeat(32)))
    expect(PAYEE).not.toBe('cc'.repeat(32))
  })
})
