import { messageOf, type Id } from '../codec/index.js'
import { buildTransfer, signTransaction, type NodeClient, type Wallet } from '../sdk/index.js'
import { purposeOf } from '../x402/quote.js'
import type { PaymentRequired } from '../x402/wire.js'
import type { Attempt, AttemptLog } from './attempts.js'
import type { Budget } from './budget.js'
import type { Call } from './call.js'
import { PaymentError } from './errors.js'
import { chooseExact, type Offer } from './offer.js'
import { redeem } from './redeem.js'
import { amountOf, ticketFor } from './ticket.js'

export interface ExactCallerOptions {
  readonly wallet: Wallet
  readonly ledger: NodeClient
  readonly chain: Id | undefined
  readonly budget: Budget
  readonly attempts: AttemptLog
  readonly fetch: typeof globalThis.fetch
  readonly patienceSeconds: number
  /** Shows a quote to the caller, whose text refuses it. */
  readonly show: (offer: { url: string; amount: bigint; payee: Id; required: PaymentRequired }) => Promise<void>
  readonly onPayment: (payment: { transaction: Id; amount: bigint; payee: Id; url: string }) => void
}

/** A payment is executed within this many Pulses or never. At four a second that is half of a quote's life. */
const VALIDITY_PULSES = 600

/** Pays calls with a transaction each. */
export class ExactCaller {
  readonly #options: ExactCallerOptions
  #chain: Promise<Id> | undefined

  constructor(options: ExactCallerOptions) {
    this.#options = options
  }

  /** Goes on with an earlier payment for the same call that has not been answered; undefined where there is none. */
  async resume(call: Call): Promise<Response | undefined> {
    const { attempts, budget } = this.#options
    const earlier = await attempts.take(call.key)
    if (earlier === undefined) return undefined
    try {
      budget.checkEarlier(amountOf(earlier), earlier.transaction)
    } catch (error) {
      await attempts.release(call.key, earlier)
      throw error
    }
    return redeem(call, earlier, this.#options)
  }

  /** Pays what a 402 asks. */
  async quoted(call: Call, url: string, required: PaymentRequired): Promise<Response> {
    const offer = chooseExact(required, await this.#theChain())
    return redeem(call, await this.#pay(call, url, offer, required), this.#options)
  }

  #theChain(): Promise<Id> {
    const { chain, ledger } = this.#options
    this.#chain ??= chain === undefined ? ledgerAnswer(ledger.status().then((status) => status.chain)) : Promise.resolve(chain)
    this.#chain.catch(() => {
      this.#chain = undefined
    })
    return this.#chain
  }

  async #pay(call: Call, url: string, offer: Offer, required: PaymentRequired): Promise<Attempt> {
    const { wallet, ledger, budget, attempts, show, onPayment } = this.#options
    const { amount, payee } = offer
    const { host } = new URL(url)
    budget.take(amount, host)
    try {
      await show({ url, amount, payee, required })
      const account = await ledgerAnswer(ledger.account(wallet.account, { signal: call.signal }), call.signal)
      const body = buildTransfer({
        wallet,
        chain: await this.#theChain(),
        pulse: account.pulse,
        to: payee,
        amount,
        purpose: purposeOf(offer.nonce),
        validForPulses: VALIDITY_PULSES,
      })
      const signed = await signTransaction(wallet, body, account)
      const attempt = await ticketFor(wallet, url, offer.requirements, signed, account.dual)
      onPayment({ transaction: signed.digest, amount, payee, url })
      // Last: what is written down will be sent, now or by the next call.
      await attempts.save(call.key, attempt)
      return attempt
    } catch (error) {
      budget.giveBack(amount, host)
      throw error
    }
  }
}

async function ledgerAnswer<T>(asked: Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await asked
  } catch (cause) {
    signal?.throwIfAborted()
    throw new PaymentError('ledger_unavailable', `nothing was paid: ${messageOf(cause)}`, { cause })
  }
}
