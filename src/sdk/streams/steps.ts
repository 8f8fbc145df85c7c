/** Positions as ascending pairs `[first, last]`, disjoint and not adjacent. */
type Spans = [first: number, last: number][]

/** Steps that a payment under way covers. */
export interface Flight {
  readonly first: number
  readonly last: number
  /** When it was sent, in events of its book. */
  readonly sentAt: number
}

/** What a seller says of a stream when it refuses a payment: an honest payer goes on from there. */
export interface Place {
  /** Every step up to here was used. */
  readonly position: number
  /** With a window: the same, and what above it, within the window, is unused. */
  readonly floor?: number
  readonly unused?: readonly (readonly [first: number, last: number])[]
}

/**
 * Which steps of a stream a payer has used. The seller is authoritative for it; this is what the payer believes:
 *
 *     unused ──take──▶ in flight ──accept──▶ used
 *        ▲  giveBack, lose │                  ▲
 *        │◀────────────────┘                  │
 *        └────────────── correct ─────────────┘
 *
 * Lowest steps first, so that an abandoned call never leaves a hole that blocks the seller's window.
 */
export class StepBook {
  /** Every step up to here is used. */
  #floor: number
  /** Used above the floor. */
  #used: Spans = []
  readonly #flights = new Set<Flight>()
  /** Counts events, so that it can be told which came after a payment was sent. */
  #events = 0
  /** How the latest flights ended: a seller's word is older than what was learnt while it was on its way. */
  #learnt: { first: number; last: number; used: boolean; at: number }[] = []

  constructor(floor: number) {
    this.#floor = floor
  }

  get floor(): number {
    return this.#floor
  }

  get flying(): number {
    return this.#flights.size
  }

  /**
   * Takes the lowest `steps` unused steps in a row.
   * @param window how far above the floor the seller lets them lie; 0: only one payment at a time.
   * @param end the last step that can be paid.
   * @returns 'later' where a payment in flight must end first, 'ended' where there is nothing left.
   */
  take(steps: number, window: number, end: number): Flight | 'later' | 'ended' {
    const first = this.lowest(steps)
    const last = first + steps - 1
    const alone = this.#flights.size === 0
    if (last > end) return alone ? 'ended' : 'later'
    // Alone, the lowest unused steps are good wherever they lie: holes below may be too narrow for this price.
    if (!alone && last > this.#floor + window) return 'later'
    const flight = { first, last, sentAt: ++this.#events }
    this.#flights.add(flight)
    return flight
  }

  /** Where the lowest `steps` steps in a row begin that are neither used nor in flight. */
  lowest(steps: number): number {
    const busy = [...this.#used, ...[...this.#flights].map(({ first, last }): [number, number] => [first, last])]
    busy.sort(([a], [b]) => a - b)
    let first = this.#floor + 1
    for (const [from, to] of busy) {
      if (from - first >= steps) return first
      first = Math.max(first, to + 1)
    }
    return first
  }

  accept(flight: Flight): void {
    this.#end(flight)
    this.#learn(flight, true)
    this.#use(flight.first, flight.last)
  }

  /** The seller did not take its steps, or gave them back: they are unused. */
  giveBack(flight: Flight): void {
    this.#end(flight)
    this.#learn(flight, false)
    this.#unuse(flight.first, flight.last)
  }

  /** Nobody knows whether the seller took its steps. They come next: whether they are used, the seller will say. */
  lose(flight: Flight): void {
    this.#end(flight)
    // A refusal on its way may be older than this loss: what it calls unused could be used by now.
    this.#learn(flight, true)
    this.#unuse(flight.first, flight.last)
  }

  /**
   * A refused flight ends, and the seller's word takes the place of what was believed, except for what was learnt after
   * the flight was sent. No step above `revealed` is taken for used, whoever says so: to pay past it would reveal it.
   */
  correct(flight: Flight, place: Place, window: number, revealed: number): void {
    const since = this.#learnt.filter(({ at }) => at > flight.sentAt)
    this.#end(flight)
    this.#floor = 0
    this.#used = usedBy(place, window, revealed)
    this.#raiseFloor()
    for (const { first, last, used } of since) {
      if (used) this.#use(first, last)
      else this.#unuse(first, last)
    }
  }

  /** Forgets, too, what was learnt before any flight still under way was sent: no word on one can be older. */
  #end(flight: Flight): void {
    this.#flights.delete(flight)
    let oldest = Infinity
    for (const { sentAt } of this.#flights) oldest = Math.min(oldest, sentAt)
    this.#learnt = this.#learnt.filter(({ at }) => at > oldest)
  }

  #learn({ first, last }: Flight, used: boolean): void {
    if (this.#flights.size > 0) this.#learnt.push({ first, last, used, at: ++this.#events })
  }

  #use(first: number, last: number): void {
    this.#used = withSpan(this.#used, Math.max(first, this.#floor + 1), last)
    this.#raiseFloor()
  }

  #unuse(first: number, last: number): void {
    if (first <= this.#floor) {
      if (last < this.#floor) this.#used = withSpan(this.#used, last + 1, this.#floor)
      this.#floor = first - 1
    }
    this.#used = withoutSpan(this.#used, first, last)
    this.#raiseFloor()
  }

  #raiseFloor(): void {
    const [lowest] = this.#used
    if (lowest === undefined || lowest[0] > this.#floor + 1) return
    this.#floor = Math.max(this.#floor, lowest[1])
    this.#used.shift()
  }
}

/** What a seller says was used, as far as the payer can have revealed it. */
function usedBy({ position, floor = position, unused }: Place, window: number, revealed: number): Spans {
  let used: Spans = floor > 0 ? [[1, floor]] : []
  if (unused !== undefined && window > 0) {
    used = withSpan(used, floor + 1, floor + window)
    for (const [first, last] of unused) used = withoutSpan(used, first, last)
  }
  return withoutSpan(used, revealed + 1, Infinity)
}

function withSpan(spans: Spans, first: number, last: number): Spans {
  if (last < first) return spans
  const apart = spans.filter(([from, to]) => to + 1 < first || last + 1 < from)
  const touching = spans.filter(([from, to]) => to + 1 >= first && last + 1 >= from)
  const from = Math.min(first, ...touching.map(([start]) => start))
  const to = Math.max(last, ...touching.map(([, end]) => end))
  return [...apart, [from, to] as [number, number]].sort(([a], [b]) => a - b)
}

function withoutSpan(spans: Spans, first: number, last: number): Spans {
  return spans.flatMap(([from, to]) => {
    const left: Spans = []
    if (from < first) left.push([from, Math.min(to, first - 1)])
    if (to > last) left.push([Math.max(from, last + 1), to])
    return left
  })
}
