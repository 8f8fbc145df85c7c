import { InputError, isId, toHex, type Id } from '../codec/index.js'
import { randomBytes } from '../crypto/runtime.js'
import { checkShape, type StreamPayment } from './payment.js'
import type { Refusal } from './refusal.js'
import type { SettlePlan } from './settle-plan.js'
import type { DeskStore } from './store.js'
import type { StreamLedger } from './stream-ledger.js'
import { StreamLine, type DeskRules, type LineContext } from './stream-line.js'
import { silentLogger, systemClock, type Clock, type Logger, type RandomBytes } from './surroundings.js'
import { decodeTab } from './tab-codec.js'
import type { Accepted } from './ticket.js'
import { ClosingWork, PaymentWork, PlanWork, SettledWork } from './works.js'

export interface StreamDeskOptions {
  readonly store: DeskStore
  readonly ledger: StreamLedger
  /** Who must be paid, unless {@link StreamDesk.accept} is told. */
  readonly payee?: Id
  /** Steps above the floor that clients which ask for it may use out of order; 0: strict positions only. Default 0. */
  readonly window?: number
  /** Pulses that a stream must still last, so that there is time to settle. Default 10. */
  readonly margin?: number
  /** A stream is due with this many unsettled steps. Default 1000. */
  readonly settleEvery?: number
  /** … or when its oldest unsettled step is this old. Default 30. */
  readonly settleAfterSeconds?: number
  /** After this a handler whose server fell silent counts as having served. Default 30. */
  readonly leaseSeconds?: number
  /** The ledger makes no two Pulses closer together than this. Default 200. */
  readonly fastestPulseMs?: number
  readonly clock?: Clock
  readonly randomBytes?: RandomBytes
  readonly logger?: Logger
}

/** What a store has on one stream. Amounts are steps. */
export interface TabStatus {
  readonly stream: Id
  readonly sold: number
  /** Of these, with a handler that has not come back. */
  readonly inFlight: number
  readonly settled: number
  readonly unsettled: number
  /** Highest position seen. */
  readonly tip: number
  readonly oldestUnsettledAt: number | undefined
  readonly closing: boolean
}

const KNOWN_OPTIONS = new Set(
  'store ledger payee window margin settleEvery settleAfterSeconds leaseSeconds fastestPulseMs clock randomBytes logger'.split(' '),
)
const MAX_WINDOW = 4_096
/** Lines that nobody used for this long are forgotten; the store has what matters. */
const FORGET_AFTER_MS = 600_000
const MAX_LINES = 10_000
const HOUSEKEEPING_MS = 500

/**
 * Takes stream payments: checks each one, makes it durable, and says what may be settled (docs/streams.md).
 *
 * Who is authoritative: the ledger for the stream itself and what is settled; the store for what was sold; the payer for
 * nothing. Desks that share a store are one desk. Two that do not would each sell the same step: one payee, one store.
 */
export class StreamDesk {
  readonly store: DeskStore
  readonly ledger: StreamLedger
  readonly rules: DeskRules
  readonly clock: Clock
  readonly logger: Logger
  /** This desk among those that share the store. */
  readonly owner: string

  readonly #payee: Id | undefined
  readonly #context: LineContext
  readonly #lines = new Map<Id, StreamLine>()
  readonly #busy = new Set<StreamLine>()
  readonly #dueListeners = new Set<(stream: Id) => void>()
  #housekeeping: ReturnType<typeof setInterval> | undefined

  /** @throws InputError naming an option that is unknown or out of its limits. */
  constructor(options: StreamDeskOptions) {
    for (const key of Object.keys(options)) {
      if (!KNOWN_OPTIONS.has(key)) throw new InputError(key, 'not an option of a stream desk')
    }
    const { window = 0, margin = 10, settleEvery = 1_000, settleAfterSeconds = 30, leaseSeconds = 30 } = options
    const { fastestPulseMs = 200, clock = systemClock, logger = silentLogger } = options
    if (options.payee !== undefined && !isId(options.payee)) throw new InputError('payee', 'expected an account id')
    this.store = options.store
    this.ledger = options.ledger
    this.clock = clock
    this.logger = logger
    this.owner = toHex((options.randomBytes ?? randomBytes)(8))
    this.#payee = options.payee
    this.rules = {
      window: within('window', window, 0, MAX_WINDOW),
      margin: within('margin', margin, 1, 1_000_000),
      depth: Math.max(window, 64),
      settleEvery: within('settleEvery', settleEvery, 1, 2 ** 32),
      settleAfterMs: within('settleAfterSeconds', settleAfterSeconds, 0, 1_000_000_000) * 1_000,
      leaseMs: within('leaseSeconds', leaseSeconds, 1, 86_400) * 1_000,
      fastestPulseMs: within('fastestPulseMs', fastestPulseMs, 1, 60_000),
    }
    this.#context = {
      store: this.store,
      ledger: this.ledger,
      rules: this.rules,
      clock,
      logger,
      owner: this.owner,
      pulse: { number: 0, at: 0 },
      busy: (line) => this.#busy.add(line),
      due: (stream) => {
        for (const listener of this.#dueListeners) listener(stream)
      },
    }
  }

  /**
   * Accepts a payment of `price` micro-USD, durably, or says why not. Costs the server at most as many hashes as the
   * window or the price has steps, 63 to the checkpoint and its path; a refused payment changes nothing.
   *
   * Rejects with SionError `store_unavailable`, `store_contended`, `store_newer_format` or `ledger_unavailable`: nothing
   * was accepted, and the same payment may be good later (HTTP 503).
   */
  accept(payment: StreamPayment, price: bigint, payee: Id | undefined = this.#payee): Promise<Accepted | Refusal> {
    if (payee === undefined) throw new InputError('payee', 'neither the desk nor this call was told who is paid')
    const refusal = checkShape(payment)
    if (refusal !== undefined) return Promise.resolve(refusal)
    const line = this.#line(payment.stream)
    return new Promise((resolve, reject) => {
      line.push(new PaymentWork(line, payment, price, payee, resolve, reject))
    })
  }

  /** What of a stream can be settled now; undefined for nothing. Rejects like {@link accept}. */
  plan(stream: Id): Promise<SettlePlan | undefined> {
    const line = this.#line(stream)
    return new Promise((resolve, reject) => {
      line.push(new PlanWork(line, resolve, reject))
    })
  }

  /** The ledger paid `position` steps, in answer to a plan made `at`. */
  recordSettled(stream: Id, position: number, at: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#line(stream).push(new SettledWork(position, at, resolve, reject))
    })
  }

  /** Before a stream is closed: from here on nothing is accepted, by any server on this store. */
  beginClosing(stream: Id): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#line(stream).push(new ClosingWork(resolve, reject))
    })
  }

  /** Forgets a stream that the ledger has closed. What was not settled by then is lost, and said. */
  async forget(stream: Id): Promise<void> {
    const status = await this.status(stream)
    this.#lines.delete(stream)
    if (status === undefined) return
    if (status.unsettled > 0) {
      this.logger.error(
        { stream, unsettled: status.unsettled },
        `stream ${stream} was closed with ${status.unsettled} steps unsettled: they cannot be collected any more`,
      )
    }
    const stored = await this.store.load(stream)
    if (stored !== undefined) await this.store.remove(stream, decodeTab(stored.tab).version)
  }

  /** What the store has on a stream. */
  async status(stream: Id): Promise<TabStatus | undefined> {
    const stored = await this.store.load(stream)
    if (stored === undefined) return undefined
    const tab = decodeTab(stored.tab)
    const { sold } = tab
    return {
      stream,
      sold,
      inFlight: tab.flying,
      settled: tab.settled,
      unsettled: Math.max(0, sold - tab.settled),
      tip: tab.tip,
      oldestUnsettledAt: tab.oldest,
      closing: tab.closing,
    }
  }

  /** Of every stream in the store, one at a time. */
  async *statuses(): AsyncGenerator<TabStatus> {
    for (const stream of await this.store.streams()) {
      const status = await this.status(stream)
      if (status !== undefined) yield status
    }
  }

  /** Calls `listener` when this desk sees a stream become due. Returns how to stop that. */
  onDue(listener: (stream: Id) => void): () => void {
    this.#dueListeners.add(listener)
    return () => this.#dueListeners.delete(listener)
  }

  /** Every Pulse that anyone learns tells the desk how much time streams have left. */
  sawPulse(pulse: number, at: number): void {
    const known = this.#context.pulse
    if (pulse < known.number) return
    known.number = pulse
    known.at = at
  }

  /** A Pulse that the ledger has not passed yet at `now`, as far as this desk can tell. */
  pulseBy(now: number): number {
    const { number, at } = this.#context.pulse
    return number + Math.floor(Math.max(0, now - at) / this.rules.fastestPulseMs)
  }

  /** Starts the desk's housekeeping; harmless twice. The timer does not keep a process alive. */
  start(): void {
    if (this.#housekeeping !== undefined) return
    const timer = setInterval(() => void this.tidy(), HOUSEKEEPING_MS)
    if (typeof timer === 'object' && 'unref' in timer) timer.unref()
    this.#housekeeping = timer
  }

  /** Stops it and writes down what only memory has. Call when no handler runs any more. Rejects if that fails. */
  async stop(): Promise<void> {
    clearInterval(this.#housekeeping)
    this.#housekeeping = undefined
    await Promise.all([...this.#busy].filter((line) => !line.idle).map((line) => line.touch()))
    this.#busy.clear()
  }

  /**
   * One round of housekeeping: writes finished handlers that no later payment carried along, renews the leases of those
   * still running, takes back what failed writes may have sold, and forgets streams that nobody uses.
   */
  async tidy(): Promise<void> {
    const now = this.clock.now()
    const { settleAfterMs, leaseMs } = this.rules
    const flushAfterMs = Math.min(settleAfterMs / 2, leaseMs / 3)
    const touched: Promise<void>[] = []
    for (const line of this.#busy) {
      if (line.idle) this.#busy.delete(line)
      else if (line.needsTouch(now, flushAfterMs)) touched.push(line.touch())
    }
    for (const [stream, line] of this.#lines) {
      const unused = now - line.usedAt
      if (line.idle && (unused > FORGET_AFTER_MS || !line.known || this.#lines.size > MAX_LINES)) this.#lines.delete(stream)
    }
    for (const result of await Promise.allSettled(touched)) {
      if (result.status === 'rejected') this.logger.warn({ error: String(result.reason) }, 'the desk could not write a tab')
    }
  }

  #line(stream: Id): StreamLine {
    let line = this.#lines.get(stream)
    if (line === undefined) {
      line = new StreamLine(stream, this.#context)
      this.#lines.set(stream, line)
    }
    return line
  }
}

function within(field: string, value: number, least: number, most: number): number {
  if (Number.isFinite(value) && value >= least && value <= most && (field === 'settleAfterSeconds' || Number.isInteger(value))) {
    return value
  }
  throw new InputError(field, `expected ${field} from ${least} to ${most}, not ${value}`)
}
