import type { Id } from '../codec/index.js'
import type { StreamLine } from './stream-line.js'

/**
 * An accepted payment, durable: its steps are sold. Exactly one of {@link finish} and {@link fail} must follow; a server
 * that dies before either has served, as far as anyone can tell.
 */
export interface Accepted {
  readonly accepted: true
  readonly stream: Id
  readonly payer: Id
  /** The first and the last step it covers. */
  readonly first: number
  readonly position: number
  /** The answer was delivered, or handed to the network: the steps may be settled. */
  finish(): void
  /**
   * The handler failed: the steps are unused again, and the same element is good. Resolves when that is durable, or, with
   * the store out of reach, once it was tried: it is tried again with whatever comes next.
   */
  fail(): Promise<void>
}

/** States: sold → (finished | failing → returned | lost). Lost: its lease ran out, and it counts as served. */
export class Ticket implements Accepted {
  readonly accepted = true
  lost = false
  #open = true

  constructor(
    readonly line: StreamLine,
    readonly payer: Id,
    readonly first: number,
    readonly position: number,
  ) {}

  get stream(): Id {
    return this.line.stream
  }

  finish(): void {
    if (!this.#open) return
    this.#open = false
    this.line.finished(this)
  }

  async fail(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await new Promise<void>((resolve) => {
      this.line.failed(this, resolve)
    })
  }
}
