import { beforeEach, describe, expect, it, vi } from 'vitest'
import type { RefusalCode, StreamDesk, StreamPayment } from '../../src/desk/index.js'
import { accepted, refused, STEP, World, type Payer } from './world.js'

/** Chain steps hashed by anyone, since the counter was last set. */
const steps = vi.hoisted(() => ({ hashed: 0 }))

vi.mock('../../src/crypto/chain-step.js', async (original) => {
  const real = await original<typeof import('../../src/crypto/chain-step.js')>()
  return {
    ...real,
    createWalker(salt: Uint8Array) {
      const walker = real.createWalker(salt)
      return {
        down(value: Uint8Array, from: number, to: number, out?: Uint8Array) {
          steps.hashed += from - to
          return walker.down(value, from, to, out)
        },
        reaches(value: Uint8Array, from: number, expected: Uint8Array, to: number) {
          steps.hashed += from - to
          return walker.reaches(value, from, expected, to)
        },
      }
    },
  }
})

const WINDOW = 32
const LENGTH = 1_000
/** Accepted by the time the attacks begin. */
const HEAD = 70

interface Scene {
  world: World
  desk: StreamDesk
  payer: Payer
  other: Payer
}

interface Attack {
  name: string
  code: RefusalCode
  /** With a window the code may be another one. */
  windowed?: RefusalCode
  price?: bigint
  prepare?: (scene: Scene) => Promise<unknown> | void
  payment: (scene: Scene) => StreamPayment
}

const wrongValue = new Uint8Array(32).fill(0x5a)

const attacks: Attack[] = [
  { name: 'position 0', code: 'invalid_position', payment: ({ payer }) => ({ ...payer.pay(HEAD + 1), position: 0 }) },
  { name: 'position −1', code: 'invalid_position', payment: ({ payer }) => ({ ...payer.pay(HEAD + 1), position: -1 }) },
  { name: 'position 2^32', code: 'invalid_position', payment: ({ payer }) => ({ ...payer.pay(1), position: 2 ** 32 }) },
  { name: 'position 2^53', code: 'invalid_position', payment: ({ payer }) => ({ ...payer.pay(1), position: 2 ** 53 }) },
  { name: 'half a position', code: 'invalid_position', payment: ({ payer }) => ({ ...payer.pay(1), position: HEAD + 0.5 }) },
  { name: 'no number', code: 'invalid_position', payment: ({ payer }) => ({ ...payer.pay(1), position: Number.NaN }) },
  { name: 'the largest position', code: 'past_end', payment: ({ payer }) => ({ ...payer.pay(1), position: 2 ** 32 - 1 }) },
  { name: 'one past the end', code: 'past_end', payment: ({ payer }) => ({ ...payer.pay(1), position: LENGTH + 1 }) },
  { name: 'a value of 31 bytes', code: 'invalid_value', payment: ({ payer }) => ({ ...payer.pay(HEAD + 1), value: new Uint8Array(31) }) },
  { name: 'a value of 33 bytes', code: 'invalid_value', payment: ({ payer }) => ({ ...payer.pay(HEAD + 1), value: new Uint8Array(33) }) },
  { name: 'no value', code: 'invalid_value', payment: ({ payer }) => ({ ...payer.pay(HEAD + 1), value: new Uint8Array(0) }) },
  { name: 'the end of the chain', code: 'wrong_position', windowed: 'outside_window', payment: ({ payer }) => payer.pay(LENGTH) },
  {
    name: 'ahead by one more than the window',
    code: 'wrong_position',
    windowed: 'outside_window',
    payment: ({ payer }) => payer.pay(HEAD + WINDOW + 1),
  },
  { name: 'the last element again', code: 'wrong_position', windowed: 'already_used', payment: ({ payer }) => payer.pay(HEAD) },
  { name: 'an element from before', code: 'wrong_position', windowed: 'already_used', payment: ({ payer }) => payer.pay(3) },
  {
    name: 'an element of another stream',
    code: 'wrong_element',
    payment: ({ payer, other }) => ({ ...payer.pay(1), position: HEAD + 1, value: other.chain.reveal(HEAD + 1) }),
  },
  {
    name: 'an element of another position',
    code: 'wrong_element',
    payment: ({ payer }) => ({ ...payer.pay(HEAD + 2), position: HEAD + 1 }),
  },
  {
    name: 'the element before, as the next one',
    code: 'wrong_element',
    payment: ({ payer }) => ({ ...payer.pay(HEAD), position: HEAD + 1 }),
  },
  { name: 'zeros', code: 'wrong_element', payment: ({ payer }) => ({ ...payer.pay(1), position: HEAD + 1, value: new Uint8Array(32) }) },
  { name: 'no jump past a checkpoint', code: 'jump_due', price: 58n * STEP, payment: ({ payer }) => payer.pay(128) },
  {
    name: 'a false jump',
    code: 'wrong_jump',
    price: 58n * STEP,
    payment: ({ payer }) => {
      const jump = payer.chain.jump(128)!
      return payer.pay(128, { jump: { ...jump, path: jump.path.map((node, at) => (at === 2 ? wrongValue : node)) } })
    },
  },
  {
    name: "another checkpoint's path",
    code: 'wrong_jump',
    price: 58n * STEP,
    payment: ({ payer }) => payer.pay(128, { jump: { index: 2, path: payer.chain.jump(64)!.path } }),
  },
  {
    name: 'another path for a checkpoint that is known',
    code: 'wrong_jump',
    payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 1, path: payer.chain.jump(128)!.path } }),
  },
  {
    name: 'a path that is too short',
    code: 'jump_path_length',
    payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 1, path: payer.chain.jump(HEAD)!.path.slice(1) } }),
  },
  { name: 'an empty path', code: 'jump_path_length', payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 1, path: [] } }) },
  {
    name: 'a path that is too long',
    code: 'jump_path_length',
    payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 1, path: [...payer.chain.jump(HEAD)!.path, wrongValue] } }),
  },
  {
    name: 'a node of 31 bytes',
    code: 'invalid_jump',
    payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 1, path: [new Uint8Array(31)] } }),
  },
  { name: 'checkpoint 0', code: 'invalid_jump', payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 0, path: [] } }) },
  { name: 'half a checkpoint', code: 'invalid_jump', payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 1.5, path: [] } }) },
  {
    name: 'a checkpoint past the end',
    code: 'jump_past_end',
    payment: ({ payer }) => payer.pay(HEAD + 1, { jump: { index: 16, path: payer.chain.jump(HEAD)!.path } }),
  },
  {
    name: 'a checkpoint above the payment',
    code: 'jump_index',
    payment: ({ payer }) => payer.pay(HEAD + 1, { jump: payer.chain.jump(128)! }),
  },
  { name: 'half a step', code: 'price_not_whole_steps', price: STEP / 2n, payment: ({ payer }) => payer.pay(HEAD + 1) },
  { name: 'a step and a half', code: 'price_not_whole_steps', price: (STEP * 3n) / 2n, payment: ({ payer }) => payer.pay(HEAD + 1) },
  { name: 'a price of nothing', code: 'price_not_whole_steps', price: 0n, payment: ({ payer }) => payer.pay(HEAD + 1) },
  { name: 'more steps than one payment may cost', code: 'too_many_steps', price: STEP * 4_097n, payment: ({ payer }) => payer.pay(LENGTH) },
  {
    name: 'a stream that does not exist',
    code: 'unknown_stream',
    payment: ({ payer }) => ({ ...payer.pay(1), stream: 'ef'.repeat(32) }),
  },
]

for (const window of [0, WINDOW]) {
  describe(`a hostile client of a desk with ${window === 0 ? 'strict positions' : `a window of ${window}`}`, () => {
    let scene: Scene
    beforeEach(async () => {
      const world = new World()
      const desk = world.desk({ window })
      const [payer, other] = [await world.stream(LENGTH), await world.stream(LENGTH)]
      for (let position = 1; position <= HEAD; position++) accepted(await desk.accept(payer.payWithJump(position), STEP)).finish()
      await desk.stop()
      scene = { world, desk, payer, other }
    })

    for (const attack of attacks) {
      it(`is refused ${attack.name}, cheaply, and nothing changes`, async () => {
        const { desk, payer, world } = scene
        const payment = { ...attack.payment(scene), ...(window === 0 ? {} : { window: true }) }
        const before = await world.store.load(payer.id)
        const price = attack.price ?? STEP
        steps.hashed = 0
        const refusal = refused(await desk.accept(payment, price))
        expect(refusal.code).toBe(window === 0 ? attack.code : (attack.windowed ?? attack.code))
        expect(refusal.reason).toMatch(/^[^\n]{10,200}$/)
        const most = Math.max(window, Math.min(4_096, Number(price / STEP))) + (payment.jump === undefined ? 0 : 63)
        expect(steps.hashed).toBeLessThanOrEqual(most)
        expect(await world.store.load(payer.id)).toEqual(before)
        expect(await world.store.streams()).toEqual([payer.id])
        accepted(await desk.accept(payer.pay(HEAD + 1), STEP))
      })
    }

    it('gets one of sixty-four copies at once', async () => {
      const { desk, payer } = scene
      const payment = payer.pay(HEAD + 1, { window: window > 0 })
      const verdicts = await Promise.all(Array.from({ length: 64 }, () => desk.accept(payment, STEP)))
      expect(verdicts.filter((verdict) => verdict.accepted)).toHaveLength(1)
      expect(await desk.status(payer.id)).toMatchObject({ sold: HEAD + 1 })
    })

    it('cannot make the desk hash more by sending the same many times', async () => {
      const { desk, payer } = scene
      const payment = { ...payer.pay(HEAD + 1), value: wrongValue }
      steps.hashed = 0
      const verdicts = await Promise.all(Array.from({ length: 64 }, () => desk.accept(payment, STEP)))
      for (const verdict of verdicts) expect(refused(verdict).code).toBe('wrong_element')
      expect(steps.hashed).toBe(64)
    })
  })
}

describe('streams that cannot pay', () => {
  const terms = [
    ['to another payee', { payee: 'cc'.repeat(32) }, 'wrong_payee'],
    ['in another asset', { asset: 'EUR' }, 'wrong_asset'],
    ['closed', { state: 'closed' }, 'stream_closed'],
    ['past its last Pulse', { lastPulse: 99 }, 'stream_expiring'],
    ['at its last Pulse', { lastPulse: 100 }, 'stream_expiring'],
    ['with a Pulse less than the margin', { lastPulse: 109 }, 'stream_expiring'],
    ['without escrow', { escrow: 0n }, 'insufficient_funds'],
    ['with escrow a millionth of a dollar short', { escrow: STEP - 1n }, 'insufficient_funds'],
  ] as const
  for (const [name, change, code] of terms) {
    it(`are refused: one ${name}`, async () => {
      const world = new World()
      const payer = await world.stream(100, change)
      const refusal = refused(await world.desk({ margin: 10 }).accept(payer.pay(1), STEP))
      expect(refusal.code).toBe(code)
      expect(await world.store.streams()).toEqual([])
    })
  }

  it('are looked up once in a Pulse, however often they ask', async () => {
    const world = new World()
    const desk = world.desk()
    const poor = await world.stream(100, { escrow: 0n })
    for (let round = 0; round < 50; round++) {
      expect(refused(await desk.accept(poor.pay(1), STEP)).code).toBe('insufficient_funds')
      expect(refused(await desk.accept({ ...poor.pay(1), stream: 'ef'.repeat(32) }, STEP)).code).toBe('unknown_stream')
    }
    expect(world.ledger.reads).toBe(2)
    world.clock.time += 200
    await desk.accept(poor.pay(1), STEP)
    expect(world.ledger.reads).toBe(3)
  })

  it('cost no ledger read to who does not hold the chain', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(100, { escrow: STEP })
    accepted(await desk.accept(payer.pay(1), STEP))
    const { reads } = world.ledger
    world.clock.time += 10_000
    expect(refused(await desk.accept({ ...payer.pay(2), value: wrongValue }, STEP)).code).toBe('wrong_element')
    expect(world.ledger.reads).toBe(reads)
  })
})
