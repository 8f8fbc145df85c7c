import { add, covers, lowestGap, NO_RANGES, sizeOf, without, type Ranges } from './ranges.js'
import type { Due } from './store.js'

/** Steps that one server has sold and whose handlers still run; after `until` (milliseconds) they count as served. */
export interface InFlight {
  /** 16 hex digits, drawn when the server's desk started. */
  readonly owner: string
  readonly until: number
  readonly ranges: Ranges
}

/**
 * What a desk knows of one stream beyond the ledger. The store's copy is authoritative; a desk works on a copy and
 * writes it back by compare-and-swap on `version`.
 *
 * A step is in one of these states:
 *
 *     unused ──accept──▶ in flight ──served, or the server died──▶ served ──settle──▶ settled
 *        ◀──────handler failed──────┘
 *
 * Used (sold) are the steps up to `floor`, except `skipped` ones, and those in `used` above it. In flight are some of
 * them. What may be settled is the number of steps served, whichever they are: the ledger counts, and e(count) lies a
 * few hashes below e(tip).
 */
export class Tab {
  version = 0
  /** Nothing more is accepted: the stream is being closed. */
  closing = false
  /** Steps the ledger is known to have paid. */
  settled = 0
  floor = 0
  /** Steps at or below the floor that were given up unsold: holes too narrow or too deep to ever sell. */
  skipped = 0
  tip = 0
  /** e(tip), the highest element ever seen. Never goes back. */
  tipElement: Uint8Array
  used: Ranges = NO_RANGES
  inFlight: readonly InFlight[] = []
  /** When the oldest unsettled step was sold, milliseconds, or earlier; undefined when none is unsettled. */
  oldest: number | undefined
  /** What the queue has for this tab. */
  due: Due | undefined

  constructor(tipElement: Uint8Array) {
    this.tipElement = tipElement
  }

  /** A copy to work on, one version on. */
  next(): Tab {
    const copy = new Tab(this.tipElement)
    copy.version = this.version + 1
    copy.closing = this.closing
    copy.settled = this.settled
    copy.floor = this.floor
    copy.skipped = this.skipped
    copy.tip = this.tip
    copy.used = this.used
    copy.inFlight = this.inFlight
    copy.oldest = this.oldest
    copy.due = this.due
    return copy
  }

  /** Steps sold and not taken back: what the escrow must cover. */
  get sold(): number {
    return this.floor - this.skipped + (this.used.length === 0 ? 0 : sizeOf(this.used))
  }

  /** Where the lowest `steps` unused steps in a row begin. */
  lowestUnused(steps: number): number {
    return this.used.length === 0 ? this.floor + 1 : lowestGap(this.used, this.floor, steps)
  }

  /** Marks `first` to `last` as used. They must be unused. */
  use(first: number, last: number): void {
    if (first === this.floor + 1 && this.used.length === 0) {
      this.floor = last
      return
    }
    this.used = add(this.used, first, last)
    this.#raiseFloor()
  }

  /** Takes back steps that were not served. They must be used. */
  unuse(first: number, last: number): void {
    if (first <= this.floor) {
      const above = last < this.floor ? add(this.used, last + 1, this.floor) : this.used
      this.floor = first - 1
      this.used = above
    } else {
      this.used = without(this.used, first, last)
    }
    this.#raiseFloor()
  }

  /**
   * Gives up the lowest holes while one lies more than `depth` below the tip, or there are more than `most` ranges: a
   * step down there costs `depth` hashes to check, and a tab must stay small. Its steps are neither sold nor settled.
   */
  skipHoles(depth: number, most: number): void {
    while (this.used.length > 0 && (this.tip - this.floor > depth || this.used.length > 2 * most)) {
      this.skipped += this.used[0]! - this.floor - 1
      this.floor = this.used[1]!
      this.used = this.used.slice(2)
    }
  }

  /** The ledger paid more steps than this tab ever sold: another desk sells this stream, or this store lost data. */
  catchUp(settled: number, element: Uint8Array): void {
    this.settled = settled
    this.skipped = 0
    this.floor = settled
    this.used = settled === 0 ? this.used : without(this.used, 1, settled)
    if (this.tip < settled) {
      this.tip = settled
      this.tipElement = element
    }
    this.#raiseFloor()
  }

  #raiseFloor(): void {
    if (this.used[0] !== this.floor + 1) return
    this.floor = this.used[1]!
    this.used = this.used.length === 2 ? NO_RANGES : this.used.slice(2)
  }

  /** Whether `owner` still has these steps in flight. */
  holds(owner: string, first: number, last: number): boolean {
    return this.inFlight.some((held) => held.owner === owner && covers(held.ranges, first, last))
  }

  /** Replaces what `owner` has in flight. */
  setInFlight(owner: string, until: number, ranges: Ranges): void {
    const [only] = this.inFlight
    if (this.inFlight.length === 0 || (this.inFlight.length === 1 && only!.owner === owner)) {
      this.inFlight = ranges.length === 0 ? [] : [{ owner, until, ranges }]
      return
    }
    const others = this.inFlight.filter((held) => held.owner !== owner)
    if (ranges.length > 0) others.push({ owner, until, ranges })
    this.inFlight = others.sort((a, b) => (a.owner < b.owner ? -1 : 1))
  }

  /** Counts as served what servers other than `owner` left in flight and did not come back for. Whether there was any. */
  expire(now: number, owner: string): boolean {
    const lasting = this.inFlight.filter((held) => held.owner === owner || held.until > now)
    if (lasting.length === this.inFlight.length) return false
    this.inFlight = lasting
    return true
  }

  /** Steps in flight anywhere. */
  get flying(): number {
    let steps = 0
    for (const held of this.inFlight) steps += sizeOf(held.ranges)
    return steps
  }
}
