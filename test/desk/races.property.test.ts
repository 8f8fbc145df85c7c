import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { memoryStore, Settler, type Accepted, type DeskStore, type StreamDesk } from '../../src/desk/index.js'
import { decodeTab } from '../../src/desk/tab-codec.js'
import { redisStore } from '../../src/desk/stores/redis.js'
import { startRedis, type RedisServer } from '../support/redis.js'
import { STEP, World, type Payer } from './world.js'

const LEASE_SECONDS = 30

type Command =
  | { kind: 'pay'; server: number; offset: number; steps: number; window: boolean }
  | { kind: 'finish' | 'fail'; which: number }
  | { kind: 'crash' | 'tidy' | 'settle'; server: number }
  | { kind: 'store'; mood: 'well' | 'down' | 'deaf' }
  | { kind: 'ledger'; mood: 'well' | 'away' | 'deaf' }
  | { kind: 'wait'; turns: number }
  | { kind: 'outage' }

const index = fc.nat(1_000)
const pay = fc.record({
  kind: fc.constant('pay' as const),
  server: index,
  offset: fc.integer({ min: -3, max: 9 }),
  steps: fc.constantFrom(1, 1, 1, 1, 2, 3),
  window: fc.boolean(),
})
const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: pay },
    { weight: 7, arbitrary: fc.record({ kind: fc.constant('finish' as const), which: index }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('fail' as const), which: index }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), server: index }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('tidy' as const), server: index }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('settle' as const), server: index }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('store' as const), mood: fc.constantFrom('well', 'well', 'down', 'deaf') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('ledger' as const), mood: fc.constantFrom('well', 'well', 'away', 'deaf') }) },
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('wait' as const), turns: fc.nat(30) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('outage' as const) }) },
  ),
  { minLength: 20, maxLength: 160, size: 'max' },
)

interface Server {
  desk: StreamDesk
  dead: boolean
  /** Accepted, and the handler still runs. */
  running: Set<Accepted>
  /** Payments without an answer yet: first and last step. */
  asked: Set<readonly [number, number]>
}

/**
 * What the world must look like, kept apart from all of the desk's code: who holds each step, what was served, and what
 * nobody can know because a server died, or was silent for longer than its lease, with it in hand.
 */
class Model {
  readonly held = new Map<number, Accepted>()
  served = 0
  /** Steps that may be charged without having been served. */
  unknown = 0

  sell(ticket: Accepted): void {
    for (let step = ticket.first; step <= ticket.position; step++) {
      if (this.held.has(step)) throw new Error(`step ${step} was sold twice`)
      this.held.set(step, ticket)
    }
  }

  giveBack(ticket: Accepted): void {
    for (let step = ticket.first; step <= ticket.position; step++) this.held.delete(step)
  }
}

const stepsOf = ({ first, position }: Accepted): number => position - first + 1

class Run {
  readonly world = new World()
  readonly model = new Model()
  readonly servers: Server[] = []
  readonly pending: { readonly server: Server; readonly done: Promise<unknown> }[] = []
  /** Answered 503: whether these steps were written is what the desk must find out. */
  readonly doubtful = new Set<number>()
  storeMood: 'well' | 'down' | 'deaf' = 'well'
  #tip = 0
  #latency = 0

  constructor(
    readonly payer: Payer,
    readonly store: DeskStore,
    readonly window: number,
  ) {}

  /** A desk whose store calls take a while, fail as the store does, and never return once its server is dead. */
  start(): Server {
    const server: Server = { desk: undefined as never, dead: false, running: new Set(), asked: new Set() }
    const through = async <T>(operation: () => Promise<T>): Promise<T> => {
      await this.#turns()
      if (server.dead) return never()
      if (this.storeMood === 'down') throw new Error('the store is down')
      const result = await operation()
      if (this.storeMood === 'deaf') throw new Error('the answer was lost')
      await this.#turns()
      return server.dead ? never() : result
    }
    const { store } = this
    server.desk = this.world.desk({
      window: this.window,
      settleEvery: 5,
      leaseSeconds: LEASE_SECONDS,
      store: {
        ...store,
        load: (stream) => through(() => store.load(stream)),
        swap: (change) => through(() => store.swap(change)),
        due: (now, limit) => through(() => store.due(now, limit)),
        lease: (stream, owner, lease) => through(() => store.lease(stream, owner, lease)),
        release: (stream, owner) => through(() => store.release(stream, owner)),
      },
    })
    this.servers.push(server)
    return server
  }

  async do(command: Command): Promise<void> {
    switch (command.kind) {
      case 'pay':
        return this.#pay(this.#server(command.server), command)
      case 'finish':
      case 'fail':
        return this.#end(command.kind, command.which)
      case 'crash':
        return this.#crash(this.#server(command.server))
      case 'tidy':
        return this.#tidy(this.#server(command.server))
      case 'settle':
        return this.#settle(this.#server(command.server))
      case 'store':
        this.storeMood = command.mood
        return
      case 'ledger':
        this.world.ledger.mood = command.mood
        return
      case 'wait':
        for (let turn = 0; turn < command.turns; turn++) await Promise.resolve()
        return
      case 'outage':
        return this.outage()
    }
  }

  #server(which: number): Server {
    return this.servers[which % this.servers.length]!
  }

  #pay(server: Server, { offset, steps, window }: Command & { kind: 'pay' }): void {
    let lowest = 1
    while (this.model.held.has(lowest)) lowest++
    const position = lowest + steps - 1 + offset
    if (position < 1 || position > this.payer.chain.length) return
    const asked = [position - steps + 1, position] as const
    server.asked.add(asked)
    const payment = this.payer.payUntilTold(position, { window })
    const done = server.desk.accept(payment, BigInt(steps) * STEP).then(
      (verdict) => {
        server.asked.delete(asked)
        if (!verdict.accepted) {
          if (verdict.code === 'jump_due') throw new Error('a payer that sends jumps until it is told was asked for one')
          return
        }
        this.payer.told(payment)
        this.model.sell(verdict)
        server.running.add(verdict)
      },
      () => {
        server.asked.delete(asked)
        for (let step = asked[0]; step <= asked[1]; step++) this.doubtful.add(step)
      },
    )
    this.pending.push({ server, done })
  }

  #end(kind: 'finish' | 'fail', which: number): void {
    const running = this.servers.flatMap((server) => [...server.running].map((ticket) => ({ server, ticket })))
    const found = running[which % Math.max(1, running.length)]
    if (found === undefined) return
    const { server, ticket } = found
    server.running.delete(ticket)
    if (kind === 'finish') {
      this.model.served += stepsOf(ticket)
      ticket.finish()
      return
    }
    this.model.giveBack(ticket)
    // Until that is written it may be lost with its server.
    const asked = [ticket.first, ticket.position] as const
    server.asked.add(asked)
    this.pending.push({ server, done: ticket.fail().then(() => void server.asked.delete(asked)) })
    for (let step = ticket.first; step <= ticket.position; step++) this.doubtful.add(step)
  }

  #crash(server: Server): void {
    server.dead = true
    this.servers.splice(this.servers.indexOf(server), 1)
    for (const ticket of server.running) this.model.unknown += stepsOf(ticket)
    for (const [first, last] of server.asked) this.model.unknown += last - first + 1
    this.#doubt()
    this.start()
  }

  /** Everyone is silent for longer than a lease. */
  outage(): void {
    this.world.clock.time += LEASE_SECONDS * 1_000
    for (const server of this.servers) {
      for (const ticket of server.running) this.model.unknown += stepsOf(ticket)
      for (const [first, last] of server.asked) this.model.unknown += last - first + 1
    }
    this.#doubt()
  }

  #doubt(): void {
    this.model.unknown += this.doubtful.size
  }

  #tidy(server: Server): void {
    this.pending.push({ server, done: server.desk.tidy() })
  }

  #settle(server: Server): void {
    const settler = new Settler({ desk: server.desk })
    const done = settler.settleAll([this.payer.id]).then(
      () => {},
      () => {},
    )
    this.pending.push({ server, done })
  }

  async check(): Promise<void> {
    const stored = await this.store.load(this.payer.id)
    const tip = stored === undefined ? 0 : decodeTab(stored.tab).tip
    expect(tip).toBeGreaterThanOrEqual(this.#tip)
    this.#tip = tip
    expect(this.world.ledger.get(this.payer.id).settled).toBeLessThanOrEqual(this.model.served + this.model.unknown)
  }

  /** Everything comes back, the handlers too, and all is settled. */
  async finish(): Promise<void> {
    this.storeMood = 'well'
    this.world.ledger.mood = 'well'
    // What a dead server began never ends.
    await Promise.all(this.pending.filter(({ server }) => !server.dead).map(({ done }) => done))
    for (const server of this.servers) {
      for (const ticket of server.running) {
        this.model.served += stepsOf(ticket)
        ticket.finish()
      }
      server.running.clear()
      await server.desk.tidy()
      await server.desk.stop()
    }
    this.world.clock.time += 2 * LEASE_SECONDS * 1_000
    const last = this.start()
    const { problems } = await new Settler({ desk: last.desk }).settleAll([this.payer.id])
    expect(problems).toEqual([])
    const { settled } = this.world.ledger.get(this.payer.id)
    // Nothing served is lost; nothing is charged that was neither served nor in a dead server's hands.
    expect(settled).toBeGreaterThanOrEqual(this.model.served)
    expect(settled).toBeLessThanOrEqual(this.model.served + this.model.unknown)
    await this.check()
    // An honest client goes on with at most one retry.
    const guess = await last.desk.accept(this.payer.pay(1), STEP)
    if (guess.accepted) return
    const retry = this.payer.payUntilTold(guess.position! + 1)
    expect(await last.desk.accept(retry, STEP)).toMatchObject({ accepted: true })
  }

  async #turns(): Promise<void> {
    this.#latency = (this.#latency * 5 + 3) % 17
    for (let turn = 0; turn < this.#latency; turn++) await Promise.resolve()
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => {})
}

async function play(store: DeskStore, window: number, list: readonly Command[]): Promise<void> {
  const prototype = new World()
  const payer = await prototype.stream(400)
  const run = new Run(payer, store, window)
  run.world.ledger.add(prototype.ledger.get(payer.id))
  run.start()
  run.start()
  for (const command of list) {
    await run.do(command)
    if (command.kind === 'wait') await run.check()
  }
  await run.finish()
}

/** No server dies or falls silent: then what is charged is what was served, to the step. */
const calm = commands.map((list) => list.filter(({ kind }) => kind !== 'crash' && kind !== 'outage'))

describe('payments, failing handlers, crashes and faults in any order', () => {
  it('never sell a step twice, lose nothing served, charge for nothing else: in memory', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(0, 4, 8), commands, (window, list) => play(memoryStore(), window, list)),
      { numRuns: 400 },
    )
  })

  it('charge exactly what was served while no server dies', async () => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(0, 4, 8), calm, (window, list) => play(memoryStore(), window, list)),
      { numRuns: 300 },
    )
  })

  describe('with Redis', () => {
    let server: RedisServer
    let store: DeskStore
    beforeAll(async () => {
      server = await startRedis()
      const real = redisStore({ url: server.url })
      // Bound, since the test spreads it.
      store = {
        load: (stream) => real.load(stream),
        swap: (change) => real.swap(change),
        remove: (stream, version) => real.remove(stream, version),
        due: (now, limit) => real.due(now, limit),
        streams: () => real.streams(),
        // By the test's own time, not by Redis's.
        lease: () => Promise.resolve(true),
        release: () => Promise.resolve(),
        close: () => real.close(),
      }
    })
    afterAll(async () => {
      await store.close()
      await server.stop()
    })

    it('never sell a step twice, lose nothing served, charge for nothing else', async () => {
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(0, 8), commands, (window, list) => play(store, window, list)),
        { numRuns: 40 },
      )
    })
  })
})
