import { InputError, messageOf, type Id } from '../codec/index.js'
import type { SettlePlan } from './settle-plan.js'
import type { SettleResult } from './stream-ledger.js'
import type { StreamDesk } from './stream-desk.js'

export interface SettlerOptions {
  readonly desk: StreamDesk
  /** How often the queue is looked at. Default 1000. */
  readonly pollMs?: number
  /** How long a stream that just became due waits for others to share its transaction. Default 50. */
  readonly gatherMs?: number
  /** Streams in one transaction. Default 256. */
  readonly streamsPerTransaction?: number
  /** Hashes that one transaction may cost the ledger. Default 262144. */
  readonly hashesPerTransaction?: number
  /** How long a server keeps a stream it settles to itself. Default 60. */
  readonly leaseSeconds?: number
  /** How long {@link Settler.stop} tries to settle what is left. Default 10. */
  readonly shutdownSeconds?: number
  /** Told after each transaction: for metrics. */
  readonly onTransaction?: (transaction: SettledTransaction) => void
}

/** One settle transaction. */
export interface SettledTransaction {
  readonly pulse: number
  readonly streams: number
  /** Steps paid by it. */
  readonly steps: number
  /** Hashes it cost the ledger, as planned. */
  readonly hashes: number
  readonly refused: number
}

/** What came of one pass over the queue. */
export interface SettleReport {
  readonly transactions: readonly SettledTransaction[]
  /** Streams that could not be settled, with the reason in one line. */
  readonly problems: readonly { readonly stream: Id; readonly reason: string }[]
}

const KNOWN_OPTIONS = new Set(
  'desk pollMs gatherMs streamsPerTransaction hashesPerTransaction leaseSeconds shutdownSeconds onTransaction'.split(' '),
)
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 60_000
/** While a stream nears its end nothing waits longer than this. */
const URGENT_PAUSE_MS = 2_000
const RETRY_AT_STOP_MS = 500
const EVER = Number.MAX_SAFE_INTEGER

interface Claim {
  readonly stream: Id
  readonly plan: SettlePlan
}

/**
 * Settles what is due: many streams in one transaction, each leased to one server meanwhile.
 *
 * Nothing here has to be exactly once. A plan is made from the durable tab, the ledger refuses to pay a position twice,
 * and a settlement whose answer was lost is found in the stream's record when it is planned again.
 */
export class Settler {
  readonly #desk: StreamDesk
  readonly #options: Required<Omit<SettlerOptions, 'onTransaction' | 'desk'>>
  readonly #onTransaction: (transaction: SettledTransaction) => void
  #timer: ReturnType<typeof setTimeout> | undefined
  #wakeAt = 0
  #stopListening: (() => void) | undefined
  #running: Promise<unknown> = Promise.resolve()
  #failures = 0
  #notBefore = -Infinity
  /** Streams that the ledger would not settle, and when to try again. */
  readonly #refused = new Map<Id, { times: number; notBefore: number }>()

  /** @throws InputError naming an option that is unknown or out of its limits. */
  constructor(options: SettlerOptions) {
    for (const key of Object.keys(options)) {
      if (!KNOWN_OPTIONS.has(key)) throw new InputError(key, 'not an option of a settler')
    }
    const { desk, pollMs = 1_000, gatherMs = 50, streamsPerTransaction = 256, hashesPerTransaction = 262_144 } = options
    const { leaseSeconds = 60, shutdownSeconds = 10 } = options
    const numbers = { pollMs, gatherMs, streamsPerTransaction, hashesPerTransaction, leaseSeconds, shutdownSeconds }
    for (const [field, value] of Object.entries(numbers)) {
      if (!Number.isFinite(value) || value < 0) throw new InputError(field, `expected a number from 0, not ${value}`)
    }
    if (streamsPerTransaction < 1) throw new InputError('streamsPerTransaction', 'expected at least 1')
    this.#desk = desk
    this.#options = numbers
    this.#onTransaction = options.onTransaction ?? (() => {})
  }

  /** Looks at the queue from now on. The timer does not keep a process alive. */
  start(): void {
    if (this.#stopListening !== undefined) return
    this.#stopListening = this.#desk.onDue(() => this.#wake(this.#options.gatherMs))
    this.#wake(0)
  }

  /** Settles what is left, with whatever became of it logged. The desk's handlers must have come back before. */
  async stop(): Promise<void> {
    this.#stopListening?.()
    this.#stopListening = undefined
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#running
    // By real time: a ledger that hangs takes its time for every answer, and somebody waits for the end.
    const giveUpAt = performance.now() + this.#options.shutdownSeconds * 1_000
    for (;;) {
      const problem = await this.settleAll().then(
        ({ problems }) => problems[0]?.reason,
        (error: unknown) => messageOf(error),
      )
      if (problem === undefined) return
      if (performance.now() >= giveUpAt) {
        this.#desk.logger.error({ problem }, `stopping with unsettled streams, which stay in the store: ${problem}`)
        return
      }
      await pause(RETRY_AT_STOP_MS)
    }
  }

  /**
   * One pass over what is due. Rejects when the ledger or the store is out of reach; called by the timer it never does,
   * and pauses grow.
   */
  settleDue(): Promise<SettleReport> {
    return this.#alone(async () => {
      const { store, ledger, clock, rules } = this.#desk
      // Without anything unsettled the ledger is not even asked for its Pulse.
      if ((await store.due({ at: EVER, pulse: EVER }, 1)).length === 0) return { transactions: [], problems: [] }
      const askedAt = clock.now()
      const pulse = await ledger.currentPulse()
      this.#desk.sawPulse(pulse, askedAt)
      return this.#pass({ at: askedAt, pulse: pulse + 2 * rules.margin }, askedAt)
    })
  }

  /** Settles everything served, due or not; of `only` these streams, if given. Rejects like {@link settleDue}. */
  settleAll(only?: readonly Id[]): Promise<SettleReport> {
    return this.#alone(() => this.#pass({ at: EVER, pulse: EVER }, EVER, only))
  }

  /** One pass at a time: two would only wait for each other's leases. */
  #alone<T>(pass: () => Promise<T>): Promise<T> {
    const result = this.#running.then(pass)
    this.#running = result.catch(() => {})
    return result
  }

  #wake(afterMs: number): void {
    if (this.#stopListening === undefined) return
    const now = this.#desk.clock.now()
    const wakeAt = Math.max(now + afterMs, Math.min(this.#notBefore, now + LONGEST_PAUSE_MS))
    if (this.#timer !== undefined && this.#wakeAt <= wakeAt) return
    clearTimeout(this.#timer)
    this.#wakeAt = wakeAt
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#turn()
    }, wakeAt - now)
    if (typeof this.#timer === 'object' && 'unref' in this.#timer) this.#timer.unref()
  }

  async #turn(): Promise<void> {
    try {
      await this.settleDue()
      this.#failures = 0
      this.#notBefore = -Infinity
    } catch (error) {
      await this.#backOff(error)
    }
    this.#wake(this.#options.pollMs)
  }

  async #backOff(problem: unknown): Promise<void> {
    const { store, clock, logger, rules } = this.#desk
    this.#failures++
    const now = clock.now()
    const near = { at: -1, pulse: this.#desk.pulseBy(now) + 2 * rules.margin }
    const ending = await store.due(near, this.#options.streamsPerTransaction).catch((): Id[] => [])
    const growing = Math.min(FIRST_PAUSE_MS * 2 ** (this.#failures - 1), LONGEST_PAUSE_MS)
    const waitMs = ending.length > 0 ? Math.min(growing, URGENT_PAUSE_MS) : growing
    this.#notBefore = now + waitMs
    const error = messageOf(problem)
    const fields = { error, attempts: this.#failures, retryInMs: waitMs }
    if (ending.length === 0) logger.warn(fields, `settling failed: ${error}; trying again in ${waitMs} ms`)
    else {
      logger.error(
        { ...fields, streams: ending },
        `settling failed, and ${ending.length} streams near their last Pulse, after which they pay nothing: ${error}`,
      )
    }
  }

  /**
   * Until nothing more comes of it: what a walk's limit left over is due again at once. What is sold meanwhile is not, or
   * a pass over busy streams would never end, and a server that stops would wait for those that go on selling.
   */
  async #pass(due: { at: number; pulse: number }, now: number, only?: readonly Id[]): Promise<SettleReport> {
    const transactions: SettledTransaction[] = []
    const problems = new Map<Id, string>()
    // Streams whose turn is over for this pass: settled, in flight only, leased elsewhere, or refused.
    const passed = new Set<Id>()
    for (;;) {
      const most = 4 * this.#options.streamsPerTransaction + passed.size + this.#refused.size
      const streams = (only ?? (await this.#desk.store.due(due, most))).filter(
        (stream) => !passed.has(stream) && (this.#refused.get(stream)?.notBefore ?? 0) <= now,
      )
      if (streams.length === 0) break
      const leased = await this.#lease(streams, passed)
      try {
        const claims = await this.#plan(leased, passed, problems)
        for (const batch of this.#batches(claims)) transactions.push(await this.#settle(batch, passed, problems))
      } finally {
        await Promise.allSettled(leased.map((stream) => this.#desk.store.release(stream, this.#desk.owner)))
      }
    }
    return { transactions, problems: [...problems].map(([stream, reason]) => ({ stream, reason })) }
  }

  async #lease(streams: readonly Id[], passed: Set<Id>): Promise<Id[]> {
    const { store, owner, clock } = this.#desk
    const lease = { now: clock.now(), milliseconds: this.#options.leaseSeconds * 1_000 }
    const held = await Promise.all(streams.map((stream) => store.lease(stream, owner, lease)))
    return streams.filter((stream, at) => {
      if (held[at] !== true) passed.add(stream)
      return held[at] === true
    })
  }

  async #plan(streams: readonly Id[], passed: Set<Id>, problems: Map<Id, string>): Promise<Claim[]> {
    const claims: Claim[] = []
    const plans = await Promise.allSettled(streams.map((stream) => this.#desk.plan(stream)))
    for (const [at, outcome] of plans.entries()) {
      const stream = streams[at]!
      if (outcome.status === 'rejected') {
        passed.add(stream)
        problems.set(stream, messageOf(outcome.reason))
      } else if (outcome.value === undefined) {
        passed.add(stream)
      } else {
        claims.push({ stream, plan: outcome.value })
      }
    }
    return claims
  }

  /** As many streams to a transaction as its limits allow. */
  #batches(claims: readonly Claim[]): Claim[][] {
    const { streamsPerTransaction, hashesPerTransaction } = this.#options
    const batches: Claim[][] = []
    let hashes = Infinity
    for (const claim of claims) {
      let batch = batches.at(-1)
      if (batch === undefined || batch.length >= streamsPerTransaction || hashes + claim.plan.hashes > hashesPerTransaction) {
        batch = []
        batches.push(batch)
        hashes = 0
      }
      batch.push(claim)
      hashes += claim.plan.hashes
    }
    return batches
  }

  async #settle(batch: readonly Claim[], passed: Set<Id>, problems: Map<Id, string>): Promise<SettledTransaction> {
    const { ledger, logger } = this.#desk
    const outcome = await ledger.settle(batch.map(({ plan }) => plan.item))
    const results = new Map(outcome.results.map((result) => [result.stream, result]))
    let refused = 0
    const steps = await Promise.all(
      batch.map(async (claim) => {
        const problem = await this.#record(claim, results.get(claim.stream))
        if (typeof problem === 'number') {
          if (claim.plan.rest === 0) passed.add(claim.stream)
          return problem
        }
        refused++
        passed.add(claim.stream)
        problems.set(claim.stream, problem)
        return 0
      }),
    )
    const transaction: SettledTransaction = {
      pulse: outcome.pulse,
      streams: batch.length,
      steps: steps.reduce((sum, count) => sum + count, 0),
      hashes: batch.reduce((sum, { plan }) => sum + plan.hashes, 0),
      refused,
    }
    logger.info(transaction, `settled ${transaction.steps} steps of ${batch.length - refused} streams in one transaction`)
    this.#onTransaction(transaction)
    return transaction
  }

  /** Steps paid, or what is wrong with the stream. */
  async #record({ stream, plan }: Claim, result: SettleResult | undefined): Promise<number | string> {
    const desk = this.#desk
    if (result !== undefined && 'settled' in result) {
      this.#refused.delete(stream)
      await desk.recordSettled(stream, result.settled, plan.at)
      return Math.max(0, result.settled - plan.settled)
    }
    const reason = result?.refused.reason ?? 'the receipt does not mention it'
    const record = (await desk.ledger.readStream(stream))?.stream
    if (record !== undefined && record.settled >= plan.item.position) {
      // An earlier attempt, or another server, did it, and the answer was lost on the way.
      await desk.recordSettled(stream, record.settled, plan.at)
      return 0
    }
    if (record?.state !== 'open') {
      await desk.forget(stream)
      return `it is closed: ${reason}`
    }
    const times = (this.#refused.get(stream)?.times ?? 0) + 1
    const waitMs = Math.min(FIRST_PAUSE_MS * 2 ** (times - 1), LONGEST_PAUSE_MS)
    this.#refused.set(stream, { times, notBefore: desk.clock.now() + waitMs })
    desk.logger.error(
      { stream, position: plan.item.position, reason, retryInMs: waitMs },
      `the ledger refused to settle stream ${stream} at ${plan.item.position}: ${reason}`,
    )
    return reason
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds)
  })
}
