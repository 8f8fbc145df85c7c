import { describe, expect, it } from 'vitest'
import { StreamError, type LedgerSays, type StreamPayment } from '../../../src/sdk/index.js'
import { buy, MemoryLog, payerOf, STEP, World } from './support.js'

async function setUp(length = 1_000, window = 0) {
  const world = new World()
  const stream = await world.stream(length)
  return { world, stream, desk: world.desk({ window }) }
}

/** A payment's end is not needed where a test only looks at it. */
function positions(payments: readonly StreamPayment[]): number[] {
  return payments.map(({ position }) => position)
}

async function codeOf(failing: Promise<unknown>): Promise<string> {
  const error: unknown = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof StreamError)) throw new Error(`not a StreamError: ${String(error)}`)
  return error.code
}

describe('a payer whose seller has no window', () => {
  it('pays one position after the other, without a refusal', async () => {
    const { stream, desk } = await setUp()
    const payer = payerOf(stream)
    for (let position = 1; position <= 200; position++) expect(await buy(payer, desk)).toEqual({ position, refusals: [] })
  })

  it('makes a second payment wait for the end of the first, in order', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream)
    const first = await payer.pay({ steps: 1 })
    const later: number[] = []
    const second = payer.pay({ steps: 1 }).then((payment) => (later.push(payment.position), payment))
    const third = payer.pay({ steps: 1 }).then((payment) => (later.push(payment.position), payment))
    await new Promise((resolve) => setImmediate(resolve))
    expect(later).toEqual([])
    first.accepted()
    ;(await second).accepted()
    ;(await third).accepted()
    expect(later).toEqual([2, 3])
  })

  it('serves a hundred calls at once, none refused', async () => {
    const { stream, desk } = await setUp()
    const payer = payerOf(stream)
    const bought = await Promise.all(Array.from({ length: 100 }, () => buy(payer, desk)))
    expect(bought.flatMap(({ refusals }) => refusals)).toEqual([])
    expect(new Set(positions(bought as never[])).size).toBe(100)
    expect(payer.position).toEqual({ used: 100, revealed: 100 })
  })

  it('covers several steps with one element', async () => {
    const { stream, desk } = await setUp()
    const payer = payerOf(stream)
    expect((await buy(payer, desk, { steps: 7 })).position).toBe(7)
    expect((await buy(payer, desk, { steps: 100 })).position).toBe(107)
    expect((await buy(payer, desk)).position).toBe(108)
  })

  it('pays the same element again after a handler failed', async () => {
    const { stream, desk } = await setUp()
    const payer = payerOf(stream)
    await buy(payer, desk)
    await expect(buy(payer, desk, { fault: 'handler fails' })).rejects.toThrow('the handler failed')
    expect(await buy(payer, desk)).toEqual({ position: 2, refusals: [] })
  })

  it('is told where to go on after an answer was lost, and needs one retry', async () => {
    const { stream, desk } = await setUp()
    const payer = payerOf(stream)
    await expect(buy(payer, desk, { fault: 'answer lost' })).rejects.toThrow('lost')
    const { position, refusals } = await buy(payer, desk)
    expect(position).toBe(2)
    expect(refusals).toHaveLength(1)
  })

  it('goes on without a refusal after a request was lost', async () => {
    const { stream, desk } = await setUp()
    const payer = payerOf(stream)
    await expect(buy(payer, desk, { fault: 'request lost' })).rejects.toThrow('lost')
    expect(await buy(payer, desk)).toEqual({ position: 1, refusals: [] })
  })

  it('goes back with a seller that lost its tabs', async () => {
    const { world, stream, desk } = await setUp()
    const payer = payerOf(stream)
    for (let i = 0; i < 9; i++) await buy(payer, desk)
    const { memoryStore } = await import('../../../src/desk/index.js')
    const forgetful = world.desk({ store: memoryStore() })
    const { position, refusals } = await buy(payer, forgetful)
    expect(position).toBe(1)
    expect(refusals.map(({ code }) => code)).toEqual(['wrong_position'])
    expect(payer.position).toEqual({ used: 1, revealed: 10 })
  })

  it('proves its checkpoints again to a seller that lost its tabs', async () => {
    const { world, stream, desk } = await setUp()
    const payer = payerOf(stream)
    for (let i = 0; i < 130; i++) await buy(payer, desk)
    const { memoryStore } = await import('../../../src/desk/index.js')
    const forgetful = world.desk({ store: memoryStore() })
    const refusals = []
    for (let i = 0; i < 140; i++) refusals.push(...(await buy(payer, forgetful)).refusals)
    expect(refusals.map(({ code }) => code)).toEqual(['wrong_position'])
  })

  it('sends a checkpoint’s jump until one was accepted, and each only once after that', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream)
    const jumps: [number, number | undefined][] = []
    for (let i = 1; i <= 130; i++) {
      const payment = await payer.pay({ steps: 1 })
      jumps.push([payment.position, payment.jump?.index])
      if (i === 64) payment.returned()
      else payment.accepted()
    }
    expect(jumps.filter(([, jump]) => jump !== undefined)).toEqual([[64, 1], [64, 1], [128, 2]])
  })
})

describe('a payer whose seller has a window', () => {
  it('has as many payments in flight as the window is wide, lowest first', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream)
    const flying = await Promise.all(Array.from({ length: 8 }, () => payer.pay({ steps: 1, window: 8 })))
    expect(positions(flying)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    let ninth: StreamPayment | undefined
    void payer.pay({ steps: 1, window: 8 }).then((payment) => (ninth = payment))
    flying[3]?.accepted()
    await new Promise((resolve) => setImmediate(resolve))
    // Its place is above the window until the lowest step is used.
    expect(ninth).toBeUndefined()
    flying[0]?.accepted()
    await new Promise((resolve) => setImmediate(resolve))
    expect(ninth?.position).toBe(9)
    expect(ninth?.window).toBe(true)
  })

  it('fills the hole of a failed call first', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream)
    const flying = await Promise.all(Array.from({ length: 4 }, () => payer.pay({ steps: 1, window: 8 })))
    flying[1]?.returned()
    expect((await payer.pay({ steps: 1, window: 8 })).position).toBe(2)
  })

  it('has 32 in flight at a real desk and is never refused', async () => {
    const { stream, desk } = await setUp(5_000, 64)
    const payer = payerOf(stream)
    let left = 2_000
    const seen = new Set<number>()
    await Promise.all(
      Array.from({ length: 32 }, async () => {
        while (left-- > 0) {
          const { position, refusals } = await buy(payer, desk, { window: 64 })
          expect(refusals).toEqual([])
          seen.add(position)
        }
      }),
    )
    expect(seen.size).toBe(2_000)
    expect(payer.position).toEqual({ used: 2_000, revealed: 2_000 })
  })

  it('takes the unused steps that a refusal names, after a restart that forgot them', async () => {
    const { stream, desk } = await setUp(1_000, 16)
    const before = payerOf(stream)
    const flying = await Promise.all(Array.from({ length: 6 }, () => before.pay({ steps: 1, window: 16 })))
    // Of 1 to 6 the seller saw 2, 3 and 6; then the payer was killed.
    for (const payment of [flying[1], flying[2], flying[5]]) {
      const verdict = await desk.accept(payment!, STEP)
      if (!verdict.accepted) throw new Error(verdict.reason)
      verdict.finish()
    }
    const after = payerOf(stream, { position: { used: 0, revealed: 6 } })
    const bought = []
    for (let i = 0; i < 5; i++) bought.push(await buy(after, desk, { window: 16 }))
    expect(positions(bought as never[])).toEqual([1, 4, 5, 7, 8])
    expect(bought.flatMap(({ refusals }) => refusals.map(({ code }) => code))).toEqual(['already_used'])
  })

  it('lets narrow holes lie where a price needs more steps in a row', async () => {
    const { stream, desk } = await setUp(1_000, 8)
    const payer = payerOf(stream)
    const [one, two] = [await payer.pay({ steps: 1, window: 8 }), await payer.pay({ steps: 7, window: 8 })]
    const verdict = await desk.accept(two, STEP * 7n)
    if (!verdict.accepted) throw new Error(verdict.reason)
    verdict.finish()
    one.lost()
    two.accepted()
    expect((await buy(payer, desk, { steps: 7, window: 8 })).position).toBe(15)
    expect((await buy(payer, desk, { steps: 1, window: 8 })).position).toBe(1)
    expect((await buy(payer, desk, { steps: 1, window: 8 })).position).toBe(16)
  })
})

describe('a seller that lies about the position', () => {
  it('cannot make the payer reveal further than it may have revealed before', async () => {
    const { stream } = await setUp()
    const log = new MemoryLog()
    const payer = payerOf(stream, { position: { used: 10, revealed: 10 }, log })
    const payment = await payer.pay({ steps: 1 })
    expect(payment.position).toBe(11)
    await expect(payment.refused({ position: 76 })).rejects.toThrow(
      /the seller says that 76 steps of stream [0-9a-f]{8} are used, and this payer has used 10 and can have revealed 75 at most; to go on from there would pay 0\.065 USD for nothing/,
    )
    expect(log.last).toEqual({ used: 10, revealed: 11 })
    // What was not paid is still good.
    expect((await payer.pay({ steps: 1 })).position).toBe(11)
  })

  it('is believed up to what a power cut can have taken from the record, until it has accepted something', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream, { position: { used: 10, revealed: 10 } })
    await (await payer.pay({ steps: 1 })).refused({ position: 75 })
    const next = await payer.pay({ steps: 1 })
    expect(next.position).toBe(76)
    next.accepted()
    const another = await payer.pay({ steps: 1 })
    expect(another.position).toBe(77)
    expect(await codeOf(another.refused({ position: 78 }))).toBe('position_conflict')
  })

  it('cannot make it skip steps with a window either', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream)
    for (let i = 0; i < 3; i++) (await payer.pay({ steps: 1, window: 8 })).accepted()
    const payment = await payer.pay({ steps: 1, window: 8 })
    // As if 4 to 10 were used, which were never revealed.
    await payment.refused({ position: 4, floor: 4, unused: [[11, 12]] })
    expect((await payer.pay({ steps: 1, window: 8 })).position).toBe(5)
  })

  it('is believed where the ledger proves it right', async () => {
    const { stream } = await setUp()
    const says: LedgerSays = { escrow: STEP * 1_000n, settled: 400, closed: false }
    const payer = payerOf(stream, { refresh: async () => says })
    await (await payer.pay({ steps: 1 })).refused({ position: 420 })
    expect((await payer.pay({ steps: 1 })).position).toBe(421)
  })

  it('that says a stream is used which the ledger has closed is told apart', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream, { refresh: async () => ({ escrow: 0n, settled: 0, closed: true }) })
    expect(await codeOf((await payer.pay({ steps: 1 })).refused({ position: 420 }))).toBe('stream_closed')
  })
})

describe('the end of a stream', () => {
  it('of 10 elements is after the tenth, and nothing is revealed for an eleventh', async () => {
    const { stream, desk } = await setUp(10)
    const log = new MemoryLog()
    const payer = payerOf(stream, { log })
    for (let i = 0; i < 9; i++) await buy(payer, desk)
    await expect(payer.pay({ steps: 2 })).rejects.toThrow(/has 10 steps, and this payment would be position 11/)
    expect((await buy(payer, desk)).position).toBe(10)
    expect(await codeOf(payer.pay({ steps: 1 }))).toBe('stream_ended')
    expect(log.last).toEqual({ used: 10, revealed: 10 })
  })

  it('of its escrow is exact too', async () => {
    const { stream, desk } = await setUp(10)
    const payer = payerOf(stream, { escrow: 4n * STEP + STEP - 1n })
    for (let i = 0; i < 4; i++) await buy(payer, desk)
    await expect(payer.pay({ steps: 1 })).rejects.toThrow(/would come to 0\.005 USD with this payment, and its escrow is 0\.004999 USD; top it up: sion stream top-up/)
  })

  it('moves with a top-up that the ledger knows of', async () => {
    const { stream } = await setUp(10)
    let asked = 0
    const refresh = async (): Promise<LedgerSays> => (asked++, { escrow: 6n * STEP, settled: 0, closed: false })
    const payer = payerOf(stream, { escrow: 5n * STEP, refresh })
    for (let i = 0; i < 6; i++) (await payer.pay({ steps: 1 })).accepted()
    expect(asked).toBe(1)
    expect(await codeOf(payer.pay({ steps: 1 }))).toBe('insufficient_escrow')
  })

  it('stays where it is while the ledger cannot be asked', async () => {
    const { stream } = await setUp(10)
    const payer = payerOf(stream, { escrow: STEP, refresh: () => Promise.reject(new Error('away')) })
    ;(await payer.pay({ steps: 1 })).accepted()
    expect(await codeOf(payer.pay({ steps: 1 }))).toBe('insufficient_escrow')
  })

  it('waits for payments in flight that may give their steps back', async () => {
    const { stream } = await setUp(2)
    const payer = payerOf(stream)
    const [, second] = [await payer.pay({ steps: 1, window: 8 }), await payer.pay({ steps: 1, window: 8 })]
    const third = payer.pay({ steps: 1, window: 8 })
    second.returned()
    expect((await third).position).toBe(2)
  })
})

describe('the position log', () => {
  it('has each position before its element is revealed', async () => {
    const { stream } = await setUp()
    const log = new MemoryLog()
    const payer = payerOf(stream, { log })
    const { position } = await payer.pay({ steps: 3 })
    expect(log.written).toEqual([{ used: 0, revealed: 3 }])
    expect(position).toBe(3)
  })

  it('that cannot be written stops the payment', async () => {
    const { stream } = await setUp()
    const log = new MemoryLog()
    const payer = payerOf(stream, { log })
    log.write = () => Promise.reject(new Error('disk full'))
    await expect(payer.pay({ steps: 1 })).rejects.toThrow('disk full')
    log.write = async () => {}
    expect((await payer.pay({ steps: 1 })).position).toBe(1)
  })

  it('is closed once, with the last word', async () => {
    const { stream } = await setUp()
    const log = new MemoryLog()
    const payer = payerOf(stream, { log })
    ;(await payer.pay({ steps: 1 })).accepted()
    await payer.close()
    await payer.close()
    expect(log.last).toEqual({ used: 1, revealed: 1 })
    expect(log.closed).toBe(true)
    expect(await codeOf(payer.pay({ steps: 1 }))).toBe('payer_closed')
  })
})

describe('a call that is abandoned while it waits', () => {
  it('gives up its place, and others go on', async () => {
    const { stream } = await setUp()
    const payer = payerOf(stream)
    const first = await payer.pay({ steps: 1 })
    const control = new AbortController()
    const abandoned = payer.pay({ steps: 1, signal: control.signal })
    const third = payer.pay({ steps: 1 })
    control.abort(new Error('enough'))
    await expect(abandoned).rejects.toThrow('enough')
    first.accepted()
    expect((await third).position).toBe(2)
    await expect(payer.pay({ steps: 1, signal: AbortSignal.abort(new Error('at once')) })).rejects.toThrow('at once')
  })
})
