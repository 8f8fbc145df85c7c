import { formatUsd, InputError, shortId, SionError, type Id, type MicroUsd } from '../../codec/index.js'
import { CHECKPOINT_EVERY } from '../../crypto/chain-step.js'
import type { CheckpointJump, PayerChain } from './payer-chain.js'
import { StepBook, type Flight, type Place } from './steps.js'

export type { Place } from './steps.js'

/** What a payer knows of its stream beside the chain. */
export interface StreamTerms {
  readonly stream: Id
  /** The chain identity of the ledger that has the stream. */
  readonly chain: Id
  readonly payer: Id
  readonly payee: Id
  /** Micro-USD a step. */
  readonly stepValue: MicroUsd
  /** Micro-USD ever put in, as far as the payer knows: it can only have grown. */
  readonly escrow: MicroUsd
}

/** Where a payer stands. */
export interface Position {
  /** Every step up to here was used. */
  readonly used: number
  /** The highest element that may have left this machine. */
  readonly revealed: number
}

/** Where a payer's position is written down. */
export interface PositionLog {
  /**
   * Before an element is revealed, and after an answer. The payer waits for it before it reveals: what is written is
   * then at most {@link SLACK} behind what was revealed, whatever happens to this machine.
   */
  write(position: Position): Promise<void>
  close(): Promise<void>
}

/** What the ledger says of a stream now. */
export interface LedgerSays {
  readonly escrow: MicroUsd
  /** The position it was paid up to: proof that the elements up to there were revealed. */
  readonly settled: number
  readonly closed: boolean
}

export interface StreamPayerOptions {
  readonly terms: StreamTerms
  readonly elements: PayerChain
  /** As it was written last. */
  readonly position: Position
  readonly log: PositionLog
  /** Asks the ledger, where there is something to learn: more escrow, a lost position. Undefined: it cannot be asked. */
  readonly refresh?: (() => Promise<LedgerSays | undefined>) | undefined
}

/** Elements that may have been revealed beyond a position that was written before this process began. */
export const SLACK = 64

export type StreamErrorCode =
  /** Every element of the chain is used. */
  | 'stream_ended'
  | 'stream_closed'
  /** The escrow covers no further payment of this price. */
  | 'insufficient_escrow'
  /** The seller says that more is used than this payer can have paid: to go on would pay for nothing. */
  | 'position_conflict'
  /** This payer was closed. */
  | 'payer_closed'

/** Why nothing was paid from a stream. */
export class StreamError extends SionError {
  override readonly name = 'StreamError'

  constructor(
    override readonly code: StreamErrorCode,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(code, message, options)
  }
}

export interface StreamPayRequest {
  /** How many steps the price is. */
  readonly steps: number
  /** Steps above the floor that the seller lets a payment lie; default 0: one payment at a time. */
  readonly window?: number
  /** Stops waiting for a turn. */
  readonly signal?: AbortSignal | undefined
}

/**
 * A payment that may be sent, as often as is needed, until one of its four ends is called. Until then its steps are in
 * flight; with a seller that has no window no other payment is made.
 */
export interface StreamPayment {
  readonly stream: Id
  /** The first step it covers. */
  readonly first: number
  /** The last. */
  readonly position: number
  /** e(position). */
  readonly value: Uint8Array
  /** Of the highest checkpoint up to `position`, until the seller has accepted one. */
  readonly jump?: CheckpointJump
  /** The seller offers a window, and this payment takes it. */
  readonly window?: true
  /** The seller took it. */
  accepted(): void
  /** The seller certainly did not, or gave the steps back since its handler failed. */
  returned(): void
  /** Not known. The next payment covers the same steps; the seller says if they are used. */
  lost(): void
  /**
   * The seller refused it, and said where it stands. The payer goes there.
   * @throws (rejects) StreamError `position_conflict`; the steps are unused again.
   */
  refused(place: Place): Promise<void>
  /**
   * The same, and the call that it was for pays again from there, before any that waits for its turn: in between, nothing
   * can move the seller on.
   */
  retried(place: Place, request: StreamPayRequest): Promise<StreamPayment>
}

interface Turn {
  readonly steps: number
  readonly window: number
  readonly signal: AbortSignal | undefined
}

interface Waiting extends Turn {
  begin(flight: Flight | 'ended'): void
  fail(error: Error): void
}

/**
 * Pays from one stream, for any number of calls at a time: gives each the lowest unused steps, in turn, and never
 * reveals an element that it has not written down. One stream has one payer at a time (docs/streams.md).
 */
export class StreamPayer {
  readonly terms: StreamTerms
  readonly #elements: PayerChain
  readonly #log: PositionLog
  readonly #refresh: StreamPayerOptions['refresh']
  readonly #book: StepBook
  #waiting: Waiting[] = []
  #escrow: MicroUsd
  #revealed: number
  /** What an earlier life of this payer may have revealed beyond what it wrote. Gone once a seller has agreed. */
  #slack = SLACK
  /** The highest checkpoint that a seller has accepted a jump of, in this process. */
  #jumped = 0
  #asking: Promise<LedgerSays | undefined> | undefined
  #closed = false

  /** @throws InputError for a position outside the chain. */
  constructor({ terms, elements, position, log, refresh }: StreamPayerOptions) {
    const { used, revealed } = position
    if (!Number.isInteger(used) || !Number.isInteger(revealed) || used < 0 || used > revealed || revealed > elements.length) {
      throw new InputError('position', `expected 0 ≤ used ≤ revealed ≤ ${elements.length}, not ${used} and ${revealed}`)
    }
    this.terms = terms
    this.#elements = elements
    this.#log = log
    this.#refresh = refresh
    this.#book = new StepBook(used)
    this.#escrow = terms.escrow
    this.#revealed = revealed
  }

  get position(): Position {
    return { used: Math.min(this.#book.floor, this.#revealed), revealed: this.#revealed }
  }

  /**
   * How many steps a price is.
   * @throws InputError `price` unless it is a whole number of them, from 1.
   */
  stepsFor(price: MicroUsd): number {
    const { stepValue, stream } = this.terms
    if (price <= 0n || price % stepValue !== 0n) {
      throw new InputError('price', `${formatUsd(price)} USD is no whole number of stream ${shortId(stream)}'s steps of ${formatUsd(stepValue)} USD`)
    }
    return Number(price / stepValue)
  }

  /**
   * The next payment, when it is its turn. In the order in which they are asked for.
   * @throws StreamError, then nothing was revealed; the signal's reason.
   */
  async pay(request: StreamPayRequest): Promise<StreamPayment> {
    const turn = turnOf(request)
    return this.#begin(await this.#turn(turn, 'last'), turn.window)
  }

  async #begin(flight: Flight, window: number): Promise<StreamPayment> {
    try {
      if (flight.last > this.#revealed) this.#revealed = flight.last
      await this.#log.write(this.position)
      return this.#payment(flight, window)
    } catch (error) {
      this.#end(() => this.#book.giveBack(flight))
      throw error
    }
  }

  /** Writes the position down for good. Call when no payment is in flight; those that wait for a turn are refused. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    for (const waiting of this.#waiting.splice(0)) waiting.fail(new StreamError('payer_closed', 'the payer of this stream was closed'))
    try {
      await this.#log.write(this.position)
    } finally {
      await this.#log.close()
    }
  }

  async #turn(turn: Turn, place: 'first' | 'last'): Promise<Flight> {
    turn.signal?.throwIfAborted()
    for (let asked = false; ; asked = true) {
      const flight = await this.#queue(turn, place)
      if (flight !== 'ended') return flight
      // The payer may have topped up elsewhere. Of the chain's end there is nothing to learn.
      const coversChain = this.#covered() === this.#elements.length
      if (coversChain || asked || (await this.#learn()) === undefined) throw this.#endError(turn.steps)
    }
  }

  #queue({ steps, window, signal }: Turn, place: 'first' | 'last'): Promise<Flight | 'ended'> {
    return new Promise((resolve, reject) => {
      const leave = (): void => signal?.removeEventListener('abort', abort)
      const waiting: Waiting = {
        steps,
        window,
        signal,
        begin: (flight) => {
          leave()
          resolve(flight)
        },
        fail: (error) => {
          leave()
          reject(error)
        },
      }
      const abort = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting)
        reject(signal?.reason as Error)
        this.#admit()
      }
      if (this.#closed) return reject(new StreamError('payer_closed', 'the payer of this stream was closed'))
      signal?.addEventListener('abort', abort, { once: true })
      if (place === 'first') this.#waiting.unshift(waiting)
      else this.#waiting.push(waiting)
      this.#admit()
    })
  }

  /** Gives turns to those who wait longest, as long as the one in front can have one. */
  #admit(): void {
    for (;;) {
      const [next] = this.#waiting
      if (next === undefined) return
      const flight = this.#book.take(next.steps, next.window, this.#covered())
      if (flight === 'later') return
      this.#waiting.shift()
      next.begin(flight)
    }
  }

  /** The last step that chain and escrow can pay. */
  #covered(): number {
    const affordable = this.#escrow / this.terms.stepValue
    const { length } = this.#elements
    return affordable < BigInt(length) ? Number(affordable) : length
  }

  #payment(flight: Flight, window: number): StreamPayment {
    const { first, last: position } = flight
    const checkpoint = Math.floor(position / CHECKPOINT_EVERY)
    const jump = checkpoint > this.#jumped ? this.#elements.jump(position) : undefined
    let open = true
    const end = (how: () => void): void => {
      if (!open) return
      open = false
      this.#end(how)
    }
    return {
      stream: this.terms.stream,
      first,
      position,
      value: this.#elements.reveal(position),
      ...(jump === undefined ? {} : { jump }),
      ...(window > 0 ? { window: true as const } : {}),
      accepted: () =>
        end(() => {
          if (jump !== undefined) this.#jumped = Math.max(this.#jumped, jump.index)
          this.#slack = 0
          this.#book.accept(flight)
          // A position that could not be written is behind, which the next one makes good or complains of.
          this.#log.write(this.position).catch(() => undefined)
        }),
      returned: () => end(() => this.#book.giveBack(flight)),
      lost: () => end(() => this.#book.lose(flight)),
      refused: async (place) => {
        if (!open) return
        open = false
        await this.#goTo(flight, place, window)
        this.#admit()
      },
      retried: async (place, request) => {
        const turn = turnOf(request)
        if (!open) throw new InputError('payment', 'has ended')
        open = false
        await this.#goTo(flight, place, window)
        return this.#begin(await this.#turn(turn, 'first'), turn.window)
      },
    }
  }

  async #goTo(flight: Flight, place: Place, window: number): Promise<void> {
    const claimed = place.floor ?? place.position
    try {
      if (claimed > this.#known()) await this.#learn()
      if (claimed > this.#known()) throw this.#conflict(claimed)
    } catch (error) {
      this.#end(() => this.#book.giveBack(flight))
      throw error
    }
    this.#revealed = Math.max(this.#revealed, claimed)
    // A seller that has lost its tab has lost what was proven to it, too.
    this.#jumped = Math.min(this.#jumped, Math.floor(claimed / CHECKPOINT_EVERY))
    this.#book.correct(flight, place, window, this.#revealed)
  }

  #end(how: () => void): void {
    how()
    this.#admit()
  }

  /** The highest element that may have been revealed, by this process or an earlier one. */
  #known(): number {
    return Math.min(this.#revealed + this.#slack, this.#elements.length)
  }

  /**
   * What the ledger says; undefined where it cannot be asked. Several calls that need it share one question.
   * @throws StreamError `stream_closed`.
   */
  async #learn(): Promise<LedgerSays | undefined> {
    if (this.#refresh === undefined) return undefined
    this.#asking ??= this.#refresh()
      .catch(() => undefined)
      .finally(() => {
        this.#asking = undefined
      })
    const says = await this.#asking
    if (says === undefined) return undefined
    if (says.closed) throw new StreamError('stream_closed', `stream ${shortId(this.terms.stream)} is closed: open another one`)
    if (says.escrow > this.#escrow) this.#escrow = says.escrow
    // What the ledger paid for was revealed, whatever became of our record of it.
    this.#revealed = Math.max(this.#revealed, Math.min(says.settled, this.#elements.length))
    return says
  }

  #endError(steps: number): StreamError {
    const { stream, stepValue } = this.terms
    const { length } = this.#elements
    const position = this.#book.lowest(steps) + steps - 1
    const name = `stream ${shortId(stream)}`
    if (position > length) {
      return new StreamError('stream_ended', `${name} has ${length} steps, and this payment would be position ${position}; open another stream`)
    }
    const escrow = formatUsd(this.#escrow)
    const needed = formatUsd(BigInt(position) * stepValue)
    return new StreamError(
      'insufficient_escrow',
      `${name} would come to ${needed} USD with this payment, and its escrow is ${escrow} USD; top it up: sion stream top-up ${shortId(stream)} AMOUNT`,
    )
  }

  #conflict(claimed: number): StreamError {
    const { stream, stepValue } = this.terms
    const { used, revealed } = this.position
    const known = this.#known()
    const extra = formatUsd(BigInt(claimed - revealed) * stepValue)
    return new StreamError(
      'position_conflict',
      `the seller says that ${claimed} steps of stream ${shortId(stream)} are used, and this payer has used ${used} and can have revealed ${known} at most; ` +
        `to go on from there would pay ${extra} USD for nothing. If the seller is right: sion stream recover ${shortId(stream)} --position ${claimed}`,
    )
  }
}

function turnOf({ steps, window = 0, signal }: StreamPayRequest): Turn {
  if (!Number.isSafeInteger(steps) || steps < 1) throw new InputError('steps', `expected a whole number from 1, not ${steps}`)
  if (!Number.isSafeInteger(window) || window < 0) throw new InputError('window', `expected a whole number from 0, not ${window}`)
  return { steps, window, signal }
}
