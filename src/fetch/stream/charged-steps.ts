import type { StreamPayer, StreamPayment } from '../../sdk/index.js'
import type { Budget } from '../budget.js'

/**
 * What stream payments cost a budget: each step once, however often it is offered. A step that was sent counts from then
 * on, also where the seller says that it did not take it: it has the element. When that step is offered again it costs
 * nothing more, so the caps bound what sellers can collect, whatever they do.
 */
export class ChargedSteps {
  /** Steps that were sent and come again. */
  readonly #again = new Set<number>()

  constructor(
    readonly payer: StreamPayer,
    readonly budget: Budget,
  ) {}

  /** @throws PaymentError `over_total`: then nothing was taken, and the payment must not be sent. */
  take({ first, position }: StreamPayment, host: string): void {
    let fresh = 0
    for (let step = first; step <= position; step++) if (!this.#again.has(step)) fresh++
    if (fresh > 0) this.budget.take(BigInt(fresh) * this.payer.terms.stepValue, host)
    for (let step = first; step <= position; step++) this.#again.delete(step)
  }

  /** The payment was sent and not taken, as far as anyone knows. */
  keep({ first, position }: StreamPayment): void {
    for (let step = first; step <= position; step++) this.#again.add(step)
  }
}
