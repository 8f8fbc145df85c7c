import { setTimeout as pause } from 'node:timers/promises'
import type { PaymentRequirements } from '../../src/x402/wire.js'
import { HttpClient, payOnce, type PaidAnswer, type PaidStream } from './paid-stream.js'

/** Numbers from 0 below `below`, the same for the same seed (mulberry32). */
export type Dice = (below: number) => number

export function diceOf(seed: number): Dice {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return Math.floor((((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32) * below)
  }
}

/** One server that sells, by its number, at the same address also after a restart. */
export interface LoadTarget {
  readonly urls: readonly string[]
  readonly terms: PaymentRequirements
}

/** What the load has seen so far, all of its buyers together. */
export class LoadCounts {
  served = 0
  /** 402, of an honest payment. */
  refused = 0
  /** No answer, or 503. */
  unknown = 0
  /** Payments that were sent again although they had bought their answer, or twice at once. */
  copies = 0
  readonly #waiting: { at: number; resolve: () => void }[] = []

  /** Answers and failures of any kind: what faults are scheduled by. */
  get attempts(): number {
    return this.served + this.refused + this.unknown
  }

  count(what: 'served' | 'refused' | 'unknown' | 'copies'): void {
    this[what]++
    for (const [at, waiter] of [...this.#waiting.entries()].reverse()) {
      if (waiter.at > this.attempts) continue
      this.#waiting.splice(at, 1)
      waiter.resolve()
    }
  }

  /** Resolves after so many more attempts. */
  after(attempts: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ at: this.attempts + attempts, resolve })
    })
  }
}

/** Longer than this a payment is not sent again and again: then something hangs for good. */
const GIVE_UP_AFTER_MS = 60_000
const PAUSE_MS = 50

/**
 * One stream's buyer, honest to the letter of the reference: the next step of those that bought nothing yet; the same
 * payment again where its fate is unknown; back to the position that a refusal names. Strict with one request in flight,
 * or, with `parallel`, in the seller's window. Now and then it is not so honest, and sends a payment twice.
 *
 * It writes down what each step bought. What cannot be right is a `violation`.
 */
export class LoadBuyer {
  /** Steps that a 200 was answered for, and as which answer of this buyer's. */
  readonly served = new Map<number, number>()
  /** Steps that were sent, and that the seller says are used, though no 200 was ever answered: paid for nothing. */
  readonly lost = new Set<number>()
  readonly violations: string[] = []
  /** The most refusals between two accepted payments. Of a strict buyer: each is a retry of the same request. */
  refusalsInARow = 0
  /** Steps that were in flight when something happened to whoever had them: all that a fault may cost. */
  readonly atRisk = new Set<number>()
  /**
   * Steps whose fate may hang on a server: it has a request for it, or had one and said nothing, or 503. Such a server may
   * have sold the step and be about to take it back; killed before that, it cannot.
   */
  readonly #outstanding: readonly Set<number>[]
  readonly #endangered = new Set<number>()
  readonly #flying = new Set<number>()
  readonly #client = new HttpClient(40_000)
  #answers = 0
  #floor = 0
  #row = 0
  #stopping = false
  #movements: (() => void)[] = []

  constructor(
    readonly name: string,
    readonly stream: PaidStream,
    readonly target: LoadTarget,
    readonly counts: LoadCounts,
    readonly dice: Dice,
    /** 1: strict positions. */
    readonly parallel: number,
    readonly window: number,
  ) {
    this.#outstanding = target.urls.map(() => new Set<number>())
  }

  /** Buys until told to stop, or the stream is used up. Resolves when no request is under way and no fate unknown. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.parallel }, () => this.#worker()))
    this.#client.close()
  }

  stop(): void {
    this.#stopping = true
    this.#moved()
  }

  /** From now until {@link safe} what this server has in hand may be lost. */
  endanger(server: number): void {
    this.#endangered.add(server)
    for (const position of this.#outstanding[server] ?? []) this.atRisk.add(position)
  }

  safe(server: number): void {
    this.#endangered.delete(server)
  }

  async #worker(): Promise<void> {
    while (!this.#stopping) {
      const position = this.#take()
      if (position === undefined) {
        if (this.#flying.size === 0) return
        await new Promise<void>((resolve) => this.#movements.push(resolve))
        continue
      }
      try {
        await this.#buy(position)
      } finally {
        this.#flying.delete(position)
        for (const outstanding of this.#outstanding) outstanding.delete(position)
        this.#moved()
      }
    }
  }

  #moved(): void {
    const waiting = this.#movements
    this.#movements = []
    for (const resolve of waiting) resolve()
  }

  /** The lowest step that bought nothing yet, within the window above those that did. */
  #take(): number | undefined {
    while (this.served.has(this.#floor + 1) || this.lost.has(this.#floor + 1)) this.#floor++
    const last = Math.min(this.stream.chain.length, this.parallel === 1 ? this.#floor + 1 : this.#floor + this.window)
    for (let position = this.#floor + 1; position <= last; position++) {
      if (this.served.has(position) || this.lost.has(position) || this.#flying.has(position)) continue
      this.#flying.add(position)
      return position
    }
    return undefined
  }

  /** Sends one step's payment until its fate is known. */
  async #buy(position: number): Promise<void> {
    const payload = this.stream.payload(position, { window: this.parallel > 1 })
    const giveUpAt = performance.now() + GIVE_UP_AFTER_MS
    for (;;) {
      const twice = this.dice(40) === 0
      const answers = twice ? await this.#sendTwice(position, payload) : [await this.#send(position, payload, this.dice(this.target.urls.length))]
      const good = answers.filter((answer) => answer?.status === 200)
      if (good.length > 1 || (good.length === 1 && this.served.has(position))) this.violations.push(`step ${position} was sold twice`)
      if (good.length > 0) {
        this.served.set(position, this.#answers++)
        this.stream.accepted(position)
        this.#row = 0
        this.counts.count('served')
        if (this.dice(50) === 0) await this.#replay()
        return
      }
      const refusal = answers.find((answer) => answer?.status === 402)
      if (refusal !== undefined && answers.every((answer) => answer?.status === 402)) {
        this.counts.count('refused')
        this.refusalsInARow = Math.max(this.refusalsInARow, ++this.#row)
        this.#learn(position, refusal)
        return
      }
      const odd = answers.find((answer) => answer !== undefined && ![200, 402, 503].includes(answer.status))
      if (odd !== undefined) this.violations.push(`step ${position} was answered ${odd.status}: ${odd.body}`)
      this.counts.count('unknown')
      if (performance.now() > giveUpAt) {
        this.violations.push(`step ${position} had no answer for ${GIVE_UP_AFTER_MS} ms`)
        this.#stopping = true
        return
      }
      await pause(PAUSE_MS)
    }
  }

  async #send(position: number, payload: unknown, server: number): Promise<Answer | undefined> {
    const sentAfter = this.#answers
    const outstanding = this.#outstanding[server]
    const url = this.target.urls[server]
    if (url === undefined || outstanding === undefined) throw new Error(`no server ${server}`)
    outstanding.add(position)
    if (this.#endangered.has(server)) this.atRisk.add(position)
    try {
      const answer = await payOnce(this.#client, url, this.target.terms, payload)
      if (answer.status !== 503) outstanding.delete(position)
      return { ...answer, sentAfter }
    } catch {
      return undefined
    }
  }

  /** At once, and each to another server where there are several: at most one buys. */
  #sendTwice(position: number, payload: unknown): Promise<(Answer | undefined)[]> {
    this.counts.count('copies')
    const { length } = this.target.urls
    const first = this.dice(length)
    return Promise.all([first, (first + 1) % length].map((server) => this.#send(position, payload, server)))
  }

  /** A payment that has bought its answer buys no other. */
  async #replay(): Promise<void> {
    this.counts.count('copies')
    const bought = [...this.served.keys()].at(-1 - this.dice(Math.min(8, this.served.size)))
    if (bought === undefined) return
    const payload = this.stream.payload(bought, { window: this.parallel > 1 })
    const answer = await this.#send(bought, payload, this.dice(this.target.urls.length))
    if (answer?.status === 200) this.violations.push(`step ${bought} was sold again in a replay`)
  }

  /** What a refusal says about where the desk stands, held against what the buyer knows. */
  #learn(position: number, { code, sion, sentAfter }: Answer): void {
    const unused = this.#unusedOf(sion)
    for (const step of unused) {
      if ((this.served.get(step) ?? Infinity) < sentAfter) this.violations.push(`step ${step} was served, and the desk says that it is unused`)
      // Taken back by the server that could not say so at the time: it is good again.
      this.lost.delete(step)
      if (step <= this.#floor) this.#floor = step - 1
    }
    if (code === 'already_used' || (code === 'wrong_position' && this.parallel === 1)) {
      if (!unused.includes(position) && !this.served.has(position) && isBelow(sion, position, code)) this.lost.add(position)
      return
    }
    if (code !== 'outside_window') this.violations.push(`step ${position} was refused: ${String(code)}`)
  }

  /** Strict: the one step that is expected. With a window: all that are unused in it. */
  #unusedOf(sion: Readonly<Record<string, unknown>>): number[] {
    if (this.parallel === 1) return typeof sion['position'] === 'number' ? [sion['position'] + 1] : []
    const steps: number[] = []
    for (const [first, last] of (sion['unused'] ?? []) as [number, number][]) for (let step = first; step <= last; step++) steps.push(step)
    return steps
  }
}

interface Answer extends PaidAnswer {
  /** How many steps had been answered with 200 when this was asked. */
  readonly sentAfter: number
}

/** Whether a refusal says that the step is used, rather than that a lower one comes first. */
function isBelow(sion: Readonly<Record<string, unknown>>, position: number, code: unknown): boolean {
  return code === 'already_used' || (typeof sion['position'] === 'number' && sion['position'] >= position)
}
