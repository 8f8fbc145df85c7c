import { SionError, type Id } from '../codec/index.js'
import { Draft, type Work } from './draft.js'
import { refusals, UnknownStream } from './refusal.js'
import { add, intersection, NO_RANGES, pairs, sizeOf, type Ranges } from './ranges.js'
import type { DeskStore, Due, StoredTab } from './store.js'
import type { Jump, StreamLedger } from './stream-ledger.js'
import { StreamView } from './stream-view.js'
import type { Clock, Logger } from './surroundings.js'
import { decodeJumps, decodeTab, encodeJumps, encodeTab } from './tab-codec.js'
import { Tab } from './tab.js'
import type { Ticket } from './ticket.js'
import { ReturnWork, TouchWork } from './works.js'

/** What the desk was told, in the units the lines use. */
export interface DeskRules {
  /** Steps above the floor that may be in use out of order; 0: strict positions only. */
  readonly window: number
  /** Pulses that a stream must still last. */
  readonly margin: number
  /** How far below the tip an unused step is still for sale. */
  readonly depth: number
  readonly settleEvery: number
  readonly settleAfterMs: number
  /** How long a handler may run, unless its server says that it still does. */
  readonly leaseMs: number
  /** No two Pulses are closer together than this. */
  readonly fastestPulseMs: number
}

/** What all lines of a desk share. */
export interface LineContext {
  readonly store: DeskStore
  readonly ledger: StreamLedger
  readonly rules: DeskRules
  readonly clock: Clock
  readonly logger: Logger
  /** This desk among those that share the store: 16 hex digits. */
  readonly owner: string
  /** The latest Pulse any line has seen, and when. */
  readonly pulse: { number: number; at: number }
  /** Has handlers running, or something to write that no payment may come to carry. */
  busy(line: StreamLine): void
  /** A stream should be settled now. */
  due(stream: Id): void
}

const MAX_ATTEMPTS = 64

/**
 * One stream's queue. Work waits while a write is under way, and then all that came meanwhile is decided on one draft
 * and written together: a payment costs at most one write, and under load less.
 */
export class StreamLine {
  /** When something last happened here, milliseconds. */
  usedAt = 0
  #queue: Work[] = []
  #running = false
  #tab: Tab | undefined
  #jumps: readonly Jump[] = []
  #view: StreamView | undefined
  /** When the ledger last said that there is no such stream. */
  #unknownAt: number | undefined
  /** Tickets sold and neither finished nor returned: the truth of which the tab's own entry is the last written copy. */
  #live: Ticket[] = []
  /** Finished since the last write. */
  #unwritten = false
  #writtenAt = 0
  /** Steps that a failed write may have sold, to be taken back if it did. Cleared by the next write that succeeds. */
  #orphans: Ranges = NO_RANGES

  constructor(
    readonly stream: Id,
    readonly context: LineContext,
  ) {}

  get rules(): DeskRules {
    return this.context.rules
  }

  get owner(): string {
    return this.context.owner
  }

  push(work: Work): void {
    this.#queue.push(work)
    if (!this.#running) void this.#run()
  }

  finished(ticket: Ticket): void {
    if (ticket.lost) return
    this.#drop(ticket)
    this.#unwritten = true
  }

  failed(ticket: Ticket, resolve: () => void): void {
    this.push(new ReturnWork(ticket, resolve))
  }

  /** A return that could not be written. */
  giveBack(ticket: Ticket): void {
    this.#drop(ticket)
    if (!ticket.lost) this.#orphans = add(this.#orphans, ticket.first, ticket.position)
    this.context.busy(this)
  }

  /** Nothing is going on, and nothing would be lost by forgetting this line. */
  get idle(): boolean {
    return !this.#running && this.#live.length === 0 && !this.#unwritten && this.#orphans.length === 0
  }

  /** Whether the ledger has such a stream, as far as this line knows. */
  get known(): boolean {
    return this.#view !== undefined
  }

  /** Whether the store's copy should be brought up to date although no payment comes. */
  needsTouch(now: number, flushAfterMs: number): boolean {
    if (this.#running) return false
    if (this.#orphans.length > 0) return true
    const age = now - this.#writtenAt
    return (this.#unwritten && age >= flushAfterMs) || (this.#live.length > 0 && age >= this.rules.leaseMs / 3)
  }

  /** Writes down what only memory has. Rejects when the store is out of reach. */
  async touch(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.push(new TouchWork((error) => (error === undefined ? resolve() : reject(error))))
    })
  }

  /** Steps in flight on any server, as of a draft. */
  flying(draft: Draft): number {
    let steps = 0
    for (const held of draft.tab.inFlight) if (held.owner !== this.owner) steps += sizeOf(held.ranges)
    return steps + sizeOf(this.#ownRanges(draft))
  }

  /** The Pulse to hold a stream's end against: as read, or never less than it may be by now. */
  pulseOf(view: StreamView, draft: Draft): number {
    const { pulse } = this.context
    if (draft.ledgerIsFresh) return Math.max(view.pulse, pulse.number)
    return pulse.number + Math.floor(Math.max(0, draft.now - pulse.at) / this.rules.fastestPulseMs)
  }

  async #run(): Promise<void> {
    this.#running = true
    try {
      while (this.#queue.length > 0) {
        const batch = this.#queue
        this.#queue = []
        await this.#turn(batch)
      }
    } finally {
      this.#running = false
    }
  }

  async #turn(all: readonly Work[]): Promise<void> {
    let batch = all
    let draft: Draft | undefined
    let written = false
    try {
      let storeIsFresh = false
      let ledgerIsFresh = false
      if (this.#view === undefined) {
        await this.#readLedger()
        ledgerIsFresh = true
      }
      if (this.#tab === undefined) {
        this.#adopt(await this.context.store.load(this.stream))
        storeIsFresh = true
      }
      for (let attempt = 0; !written; attempt++) {
        if (attempt === MAX_ATTEMPTS) throw contended()
        draft = this.#draft(storeIsFresh, ledgerIsFresh)
        for (const work of batch) work.apply(draft)
        if (draft.wantsStore) {
          draft = undefined
          await this.#adoptCurrent(await this.context.store.load(this.stream))
          storeIsFresh = true
        } else if (draft.wantsLedger.length > 0) {
          const { wantsLedger } = draft
          draft = undefined
          const problem = await this.#readLedgerAgain()
          if (problem === undefined) ledgerIsFresh = true
          else batch = without(batch, wantsLedger, problem.error)
        } else {
          written = !draft.changed || (await this.#write(draft))
          storeIsFresh = true
        }
      }
    } catch (error) {
      this.#abandon(draft?.sold ?? [])
      for (const work of batch) work.failed(error)
      return
    }
    if (draft !== undefined) this.#commit(draft)
    for (const work of batch) work.done()
  }

  #draft(storeIsFresh: boolean, ledgerIsFresh: boolean): Draft {
    const tab = this.#tab
    const view = this.#view
    if (tab === undefined || view === undefined) throw new Error('a line was drafted before it was read')
    const draft = new Draft(tab.next(), this.#jumps, view, this.context.clock.now(), storeIsFresh, ledgerIsFresh)
    this.usedAt = draft.now
    if (view.record.settled > tab.settled) this.#followLedger(draft)
    if (this.#orphans.length > 0) this.#takeBackOrphans(draft)
    return draft
  }

  #followLedger(draft: Draft): void {
    const { record } = draft.view
    const { tab } = draft
    draft.changed = true
    if (record.settled <= tab.sold) {
      tab.settled = record.settled
      return
    }
    this.context.logger.error(
      { stream: this.stream, settled: record.settled, sold: tab.sold },
      `the ledger has settled stream ${this.stream} up to ${record.settled}, and this desk sold up to ${tab.sold}: ` +
        'either another desk without this store sells the same stream, or this store lost data; going on from the ledger',
    )
    tab.catchUp(record.settled, record.settledElement)
  }

  #takeBackOrphans(draft: Draft): void {
    const { tab } = draft
    draft.changed = true
    const written = tab.inFlight.find(({ owner }) => owner === this.owner)
    for (const [first, last] of pairs(intersection(written?.ranges ?? NO_RANGES, this.#orphans))) {
      if (tab.sold - (last - first + 1) >= tab.settled) tab.unuse(first, last)
    }
  }

  /** False when the store was further on; then that is adopted. */
  async #write(draft: Draft): Promise<boolean> {
    const { tab } = draft
    tab.setInFlight(this.owner, draft.now + this.rules.leaseMs, this.#ownRanges(draft))
    const sold = tab.sold
    if (sold <= tab.settled) tab.oldest = undefined
    const before = tab.due
    tab.due = this.#dueOf(tab, sold, draft.view)
    const requeue = tab.due?.at !== before?.at || tab.due?.pulse !== before?.pulse
    const result = await this.context.store.swap({
      stream: this.stream,
      version: tab.version - 1,
      tab: encodeTab(tab),
      ...(draft.jumpsChanged ? { jumps: encodeJumps(draft.jumps) } : undefined),
      ...(requeue ? { due: tab.due ?? 'never' } : undefined),
    })
    if (!result.swapped) {
      await this.#adoptCurrent(result.current)
      return false
    }
    this.#writtenAt = draft.now
    this.#unwritten = false
    this.#orphans = NO_RANGES
    if (requeue && tab.due !== undefined && tab.due.at <= draft.now) this.context.due(this.stream)
    return true
  }

  #dueOf(tab: Tab, sold: number, view: StreamView): Due | undefined {
    const { settleEvery, settleAfterMs } = this.rules
    const { oldest, due } = tab
    if (oldest === undefined) return undefined
    const at = tab.closing || sold - tab.settled >= settleEvery ? oldest : oldest + settleAfterMs
    const pulse = view.record.lastPulse
    return due?.at === at && due.pulse === pulse ? due : { at, pulse }
  }

  #commit(draft: Draft): void {
    if (draft.changed) {
      this.#tab = draft.tab
      this.#jumps = draft.jumps
    }
    for (const ticket of draft.returned) this.#drop(ticket)
    if (draft.sold.length === 0) return
    if (this.#live.length === 0) this.context.busy(this)
    for (const ticket of draft.sold) this.#live.push(ticket)
  }

  /** A write failed, or may have: what the store has now is unknown, and what this batch sold was not sold. */
  #abandon(sold: readonly Ticket[]): void {
    this.#tab = undefined
    for (const { first, position } of sold) this.#orphans = add(this.#orphans, first, position)
    if (sold.length > 0) this.context.busy(this)
  }

  /**
   * What the store has now. Where it has nothing any more, somebody forgot the stream, most likely because it was closed:
   * a new tab is begun from what the ledger says now, never from what it said before.
   */
  async #adoptCurrent(stored: StoredTab | undefined): Promise<void> {
    if (stored === undefined) {
      const problem = await this.#readLedgerAgain()
      if (problem !== undefined) throw problem.error
    }
    this.#adopt(stored)
  }

  #adopt(stored: StoredTab | undefined): void {
    if (stored === undefined) {
      this.#tab = this.#newTab()
      this.#jumps = []
    } else {
      this.#tab = decodeTab(stored.tab)
      this.#jumps = decodeJumps(stored.jumps)
    }
    const tab = this.#tab
    for (const ticket of this.#live) {
      if (tab.holds(this.owner, ticket.first, ticket.position)) continue
      ticket.lost = true
      this.context.logger.warn(
        { stream: this.stream, first: ticket.first, position: ticket.position },
        'a handler ran longer than its lease: its steps count as served',
      )
    }
    if (this.#live.some(({ lost }) => lost)) this.#live = this.#live.filter(({ lost }) => !lost)
  }

  #newTab(): Tab {
    const view = this.#view
    if (view === undefined) throw new Error('a tab was begun before its stream was read')
    return new Tab(view.record.anchor)
  }

  async #readLedger(): Promise<void> {
    const { ledger, clock, pulse } = this.context
    const at = clock.now()
    if (this.#unknownAt !== undefined && at - this.#unknownAt < this.rules.fastestPulseMs) {
      throw new UnknownStream(refusals.unknown(this.stream))
    }
    let answer
    try {
      answer = await ledger.readStream(this.stream)
    } catch (cause) {
      if (cause instanceof SionError) throw cause
      throw new SionError('ledger_unavailable', `stream ${this.stream} could not be read from the ledger`, { cause })
    }
    if (answer === undefined) {
      this.#unknownAt = at
      throw new UnknownStream(refusals.unknown(this.stream))
    }
    this.#view = new StreamView(answer.stream, answer.pulse, at)
    if (answer.pulse < pulse.number) return
    pulse.number = answer.pulse
    pulse.at = at
  }

  /** The error, if the ledger is out of reach: only work that cannot do without it fails then. */
  async #readLedgerAgain(): Promise<{ error: unknown } | undefined> {
    const view = this.#view
    // Not twice within one Pulse: nothing can have changed, and a refused payer must not cost a read a request.
    if (view !== undefined && this.context.clock.now() - view.readAt < this.rules.fastestPulseMs) return undefined
    try {
      await this.#readLedger()
      return undefined
    } catch (error) {
      return { error }
    }
  }

  #ownRanges(draft: Draft): Ranges {
    const only = draft.sold[0]
    if (this.#live.length === 0 && draft.sold.length === 1 && only !== undefined) return [only.first, only.position]
    let ranges = NO_RANGES
    for (const ticket of this.#live) {
      if (!draft.returned.includes(ticket)) ranges = add(ranges, ticket.first, ticket.position)
    }
    for (const ticket of draft.sold) ranges = add(ranges, ticket.first, ticket.position)
    return ranges
  }

  #drop(ticket: Ticket): void {
    const at = this.#live.indexOf(ticket)
    if (at >= 0) this.#live.splice(at, 1)
  }
}

/** `batch` without the work that failed. */
function without(batch: readonly Work[], failing: readonly Work[], error: unknown): readonly Work[] {
  for (const work of failing) work.failed(error)
  return batch.filter((work) => !failing.includes(work))
}

function contended(): SionError {
  return new SionError('store_contended', `${MAX_ATTEMPTS} attempts to write one tab failed: other servers were faster`)
}
