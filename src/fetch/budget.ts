import { formatUsd, parseUsd, type MicroUsd } from '../codec/index.js'
import { PaymentError } from './errors.js'

export interface Caps {
  /** The most one request may cost, in decimal USD. Default `1`. */
  maxPerRequest?: string
  /** The most that may be signed away by this payer in all, in decimal USD. Default `10`. */
  maxTotal?: string
  /** The most for one host (`api.example.com:8402`), in decimal USD, within the total. Default: the total. */
  maxPerHost?: string
}

/**
 * What a payer may still spend. Everything signed counts, also what a server then refused: it holds the signature and
 * could still have it executed. So the total bounds the loss, whatever the servers do.
 */
export class Budget {
  readonly #perRequest: MicroUsd
  readonly #total: MicroUsd
  readonly #perHost: MicroUsd
  #spent: MicroUsd = 0n
  readonly #spentAt = new Map<string, MicroUsd>()

  /** @throws InputError naming the cap that is no amount. */
  constructor({ maxPerRequest = '1', maxTotal = '10', maxPerHost = maxTotal }: Caps) {
    this.#perRequest = parseUsd(maxPerRequest, 'maxPerRequest')
    this.#total = parseUsd(maxTotal, 'maxTotal')
    this.#perHost = parseUsd(maxPerHost, 'maxPerHost')
  }

  /** Micro-USD signed so far. */
  get spent(): MicroUsd {
    return this.#spent
  }

  /**
   * Takes the exact amount that is about to be signed. Not awaited in between: concurrent calls cannot overdraw it.
   * @throws PaymentError `over_cap` or `over_total`; then nothing is taken.
   */
  take(amount: MicroUsd, host: string): void {
    this.checkRequest(amount)
    const atHost = this.#spentAt.get(host) ?? 0n
    this.#checkTotal(amount, this.#spent, this.#total, 'in all')
    this.#checkTotal(amount, atHost, this.#perHost, `to ${host}`)
    this.#spent += amount
    this.#spentAt.set(host, atHost + amount)
  }

  /** @throws PaymentError `over_cap` for a price that one request may not cost. */
  checkRequest(price: MicroUsd): void {
    if (price <= this.#perRequest) return
    throw new PaymentError(
      'over_cap',
      `the server asks ${formatUsd(price)} USD, more than the ${formatUsd(this.#perRequest)} USD this client may pay`,
    )
  }

  /**
   * A payment that was signed before, perhaps by another process under other caps, and that may not have been made yet.
   * @throws PaymentError `over_cap`.
   */
  checkEarlier(amount: MicroUsd, transaction: string): void {
    if (amount <= this.#perRequest) return
    throw new PaymentError(
      'over_cap',
      `an earlier payment for this call, transaction ${transaction}, has not been answered: it is of ${formatUsd(amount)} USD, more than the ${formatUsd(this.#perRequest)} USD this client may pay`,
    )
  }

  /** Gives back what was taken and then not signed. */
  giveBack(amount: MicroUsd, host: string): void {
    this.#spent -= amount
    this.#spentAt.set(host, (this.#spentAt.get(host) ?? 0n) - amount)
  }

  #checkTotal(amount: MicroUsd, spent: MicroUsd, most: MicroUsd, where: string): void {
    if (spent + amount <= most) return
    throw new PaymentError(
      'over_total',
      `the server asks ${formatUsd(amount)} USD; ${formatUsd(spent)} of the ${formatUsd(most)} USD this client may pay ${where} are spent`,
    )
  }
}
