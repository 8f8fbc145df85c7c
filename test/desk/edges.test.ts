import { describe, expect, it } from 'vitest'
import { StreamDesk } from '../../src/desk/index.js'
import { accepted, PAYEE, refused, STEP, World } from './world.js'

describe('the end of a stream is exact', () => {
  it('its last element is good, and the one after is not', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(65)
    for (let position = 1; position <= 64; position++) accepted(await desk.accept(payer.payWithJump(position), STEP)).finish()
    expect(refused(await desk.accept(payer.pay(65), 2n * STEP)).code).toBe('wrong_position')
    accepted(await desk.accept(payer.pay(65), STEP)).finish()
    expect(refused(await desk.accept({ ...payer.pay(65), position: 66 }, STEP)).code).toBe('past_end')
    expect((await desk.plan(payer.id))?.item.position).toBe(65)
  })

  it('also in a window, and in steps of three', async () => {
    const world = new World()
    const desk = world.desk({ window: 50 })
    const payer = await world.stream(9)
    accepted(await desk.accept(payer.pay(9, { window: true }), 3n * STEP))
    expect(refused(await desk.accept({ ...payer.pay(9), position: 12, window: true }, 3n * STEP)).code).toBe('past_end')
    accepted(await desk.accept(payer.pay(6, { window: true }), 3n * STEP))
    accepted(await desk.accept(payer.pay(3, { window: true }), 3n * STEP))
    expect(refused(await desk.accept(payer.pay(9, { window: true }), 3n * STEP)).code).toBe('already_used')
  })
})

describe('the end of an escrow is exact', () => {
  for (const [name, escrow, steps] of [
    ['one below', 10n * STEP - 1n, 9],
    ['at equality', 10n * STEP, 10],
    ['one above', 10n * STEP + 1n, 10],
  ] as const) {
    it(`${name}: ${escrow} micro-USD cover ${steps} steps of ${STEP}`, async () => {
      const world = new World()
      const desk = world.desk()
      const payer = await world.stream(100, { escrow })
      for (let position = 1; position <= steps; position++) accepted(await desk.accept(payer.pay(position), STEP))
      const refusal = refused(await desk.accept(payer.pay(steps + 1), STEP))
      expect(refusal).toMatchObject({ code: 'insufficient_funds', position: steps })
      expect(refusal.reason).toContain(`${Number(steps + 1) / 1_000} USD`)
    })
  }

  it('counts what was settled as paid, not as free', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(100, { escrow: 10n * STEP })
    for (let position = 1; position <= 8; position++) accepted(await desk.accept(payer.pay(position), STEP)).finish()
    const plan = (await desk.plan(payer.id))!
    await world.ledger.settle([plan.item])
    await desk.recordSettled(payer.id, 8, plan.at)
    accepted(await desk.accept(payer.pay(10), 2n * STEP))
    expect(refused(await desk.accept(payer.pay(11), STEP)).code).toBe('insufficient_funds')
  })

  it('is read again when a payment needs more, and a top-up is then good at once', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(100, { escrow: 2n * STEP })
    accepted(await desk.accept(payer.pay(2), 2n * STEP))
    expect(refused(await desk.accept(payer.pay(3), STEP)).code).toBe('insufficient_funds')
    world.ledger.get(payer.id).escrow = 3n * STEP
    world.ledger.pulse++
    world.clock.time += 250
    accepted(await desk.accept(payer.pay(3), STEP))
    expect(refused(await desk.accept(payer.pay(4), STEP)).code).toBe('insufficient_funds')
  })

  it('does not count steps that were given back', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(100, { escrow: STEP })
    for (let round = 0; round < 3; round++) await accepted(await desk.accept(payer.pay(1), STEP)).fail()
    accepted(await desk.accept(payer.pay(1), STEP))
  })
})

describe('the end of its time is exact', () => {
  for (const [left, good] of [
    [9, false],
    [10, true],
    [11, true],
  ] as const) {
    it(`with ${left} Pulses left and a margin of 10 a payment is ${good ? 'good' : 'refused'}`, async () => {
      const world = new World()
      world.ledger.pulse = 500
      const payer = await world.stream(100, { lastPulse: 500 + left })
      const verdict = await world.desk({ margin: 10 }).accept(payer.pay(1), STEP)
      if (good) accepted(verdict)
      else {
        expect(refused(verdict)).toMatchObject({
          code: 'stream_expiring',
          reason: `the stream lasts ${left} more Pulses, and this seller needs 10`,
        })
      }
    })
  }

  it('is exact too when the desk last heard of a Pulse long ago', async () => {
    const world = new World()
    const desk = world.desk({ margin: 10 })
    const payer = await world.stream(100, { lastPulse: 200 })
    world.ledger.pulse = 100
    accepted(await desk.accept(payer.pay(1), STEP))
    world.clock.time += 3_600_000
    world.ledger.pulse = 190
    accepted(await desk.accept(payer.pay(2), STEP))
    world.clock.time += 3_600_000
    world.ledger.pulse = 191
    expect(refused(await desk.accept(payer.pay(3), STEP)).code).toBe('stream_expiring')
    world.ledger.get(payer.id).lastPulse = 201
    world.clock.time += 1_000
    accepted(await desk.accept(payer.pay(3), STEP))
  })

  it('does not ask the ledger while there is certainly enough', async () => {
    const world = new World()
    const desk = world.desk({ margin: 10, fastestPulseMs: 200 })
    const payer = await world.stream(100, { lastPulse: 1_000 })
    world.ledger.pulse = 100
    accepted(await desk.accept(payer.pay(1), STEP))
    world.clock.time += 200 * 890
    accepted(await desk.accept(payer.pay(2), STEP))
    expect(world.ledger.reads).toBe(1)
    world.clock.time += 200
    accepted(await desk.accept(payer.pay(3), STEP))
    expect(world.ledger.reads).toBe(2)
  })

  it('fails only the payments that need the ledger while that is away', async () => {
    const world = new World()
    const desk = world.desk({ window: 10 })
    const payer = await world.stream(100, { escrow: 3n * STEP })
    accepted(await desk.accept(payer.pay(1), STEP))
    world.ledger.mood = 'away'
    world.clock.time += 60_000
    accepted(await desk.accept(payer.pay(2), STEP))
    const [tooMuch, fine] = await Promise.allSettled([
      desk.accept(payer.pay(4, { window: true }), 2n * STEP),
      desk.accept(payer.pay(3, { window: true }), STEP),
    ])
    expect(tooMuch).toMatchObject({ status: 'rejected', reason: { code: 'ledger_unavailable' } })
    expect(fine).toMatchObject({ status: 'fulfilled', value: { accepted: true } })
  })
})

describe('the options of a desk', () => {
  const world = new World()
  const base = { store: world.store, ledger: world.ledger, payee: PAYEE }
  it('are checked when it is made', () => {
    for (const wrong of [
      { window: -1 },
      { window: 0.5 },
      { window: 4_097 },
      { margin: 0 },
      { settleEvery: 0 },
      { settleAfterSeconds: -1 },
      { settleAfterSeconds: Number.NaN },
      { leaseSeconds: 0 },
      { fastestPulseMs: 0 },
      { payee: 'bob' },
      { payees: [] },
    ]) {
      expect(() => new StreamDesk({ ...base, ...wrong }), JSON.stringify(wrong)).toThrow(Object.keys(wrong)[0])
    }
    expect(new StreamDesk({ ...base, settleAfterSeconds: 0.5 }).rules).toMatchObject({ window: 0, margin: 10, settleAfterMs: 500 })
  })
})
