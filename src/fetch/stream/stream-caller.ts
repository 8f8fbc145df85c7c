import { messageOf, shortId, type Id, type MicroUsd } from '../../codec/index.js'
import { StreamError, type StreamPayer, type StreamPayment, type StreamPayRequest } from '../../sdk/index.js'
import { encodePayment, PAYMENT_SIGNATURE } from '../../x402/headers.js'
import { streamPayload } from '../../x402/stream/payment.js'
import { X402_VERSION, type PaymentRequired, type SettleResponse } from '../../x402/wire.js'
import type { Budget } from '../budget.js'
import type { Call } from '../call.js'
import { PaymentError } from '../errors.js'
import { quoteOf } from '../offer.js'
import { followPaid } from '../redirect.js'
import { pause, retryAfterMs } from '../retry.js'
import { readSettlement } from '../settlement.js'
import { ChargedSteps } from './charged-steps.js'
import { isBusy, isUsed, verdictOf } from './stream-answer.js'
import { chooseStream, sameOffer, type StreamOffer } from './stream-offer.js'

export interface StreamCallerOptions {
  readonly payer: StreamPayer
  readonly budget: Budget
  readonly fetch: typeof globalThis.fetch
  readonly patienceSeconds: number
  /** Shows a quote to the caller, whose text refuses it. */
  readonly show: (offer: { url: string; amount: MicroUsd; payee: Id; required: PaymentRequired }) => Promise<void>
  readonly onPayment: (payment: { stream: Id; position: number; amount: MicroUsd; payee: Id; url: string }) => void
}

/** What a method and URL cost, and where the price was quoted. */
interface Price {
  readonly url: string
  readonly offer: StreamOffer
}

interface Answer {
  readonly response: Response
  readonly settlement: SettleResponse | undefined
  /** The payment was sent twice: its first answer was lost. */
  readonly resent: boolean
}

/** Prices that are kept in mind at most; the oldest is forgotten first. */
const MOST_PRICES = 1_000
const RESEND_AFTER_MS = 50
const RETRY_MS = 1_000
const AFTER_ABORT_MS = 50

/**
 * Pays calls from one stream. A price once quoted for a method and URL is paid up front from then on, and calls for it
 * that come before it is known wait for the one that asks. A refused payment is made good once: from the position that
 * the seller names, or at its new price.
 */
export class StreamCaller {
  readonly #options: StreamCallerOptions
  readonly #charged: ChargedSteps
  readonly #prices = new Map<string, Price>()
  /** Calls that ask for a price, and how to end the waiting of those that need the same. */
  readonly #asking = new Map<string, Promise<void>>()
  readonly #known = new WeakMap<Call, () => void>()

  constructor(options: StreamCallerOptions) {
    this.#options = options
    this.#charged = new ChargedSteps(options.payer, options.budget)
  }

  /**
   * Pays the call up front where its price is known, else has `ask` find out: {@link quoted} is what `ask` calls with a 402.
   * @throws PaymentError.
   */
  async call(call: Call, ask: () => Promise<Response>): Promise<Response> {
    const key = keyOf(call)
    const asking = this.#asking.get(key)
    if (asking !== undefined) await asking
    const price = this.#prices.get(key)
    if (price !== undefined) return this.#pay(call, price)
    // Whoever was waited for has not been quoted: each call is on its own.
    if (asking !== undefined) return ask()
    let known = (): void => {}
    this.#asking.set(
      key,
      new Promise((resolve) => {
        known = () => {
          this.#asking.delete(key)
          resolve()
        }
        this.#known.set(call, known)
      }),
    )
    try {
      return await ask()
    } finally {
      known()
    }
  }

  /** Pays what a 402 asks; where the stream cannot, one sentence why. */
  async quoted(call: Call, url: string, required: PaymentRequired): Promise<Response | { readonly problem: string }> {
    const offer = chooseStream(required, this.#options.payer)
    if ('problem' in offer) return offer
    const price = { url, offer }
    await this.#agree(price, required)
    this.#remember(keyOf(call), price)
    this.#known.get(call)?.()
    return this.#pay(call, price)
  }

  async #agree({ url, offer }: Price, required: PaymentRequired): Promise<void> {
    const { amount, payee } = offer
    this.#options.budget.checkRequest(amount)
    await this.#options.show({ url, amount, payee, required })
  }

  #remember(key: string, price: Price): void {
    this.#prices.delete(key)
    this.#prices.set(key, price)
    for (const oldest of this.#prices.keys()) {
      if (this.#prices.size <= MOST_PRICES) break
      this.#prices.delete(oldest)
    }
  }

  async #pay(call: Call, first: Price): Promise<Response> {
    const key = keyOf(call)
    let price = first
    let payment = await fromStream(this.#options.payer.pay(requestOf(price, call)))
    for (let corrected = false, renewed = false; ; ) {
      const { response, settlement, resent } = await this.#send(call, price, payment)
      const verdict = verdictOf(response, settlement)
      if (verdict.kind === 'taken') {
        payment.accepted()
        return followPaid(call, price.url, response, settlement, this.#options.fetch)
      }
      this.#charged.keep(payment)
      if (verdict.kind === 'silent') {
        // Not priced any more, perhaps: the next call asks. Or not the seller's answer.
        if (response.status < 500) this.#prices.delete(key)
        payment.lost()
        return response
      }
      if (verdict.kind === 'failed') {
        payment.returned()
        return response
      }
      if (verdict.kind === 'misplaced' && resent && isUsed(payment, verdict.place)) {
        await response.body?.cancel()
        await fromStream(payment.refused(verdict.place))
        throw answerLost(payment)
      }
      const renewal = this.#renewal(key, price, response)
      if (verdict.kind === 'misplaced' ? corrected : renewed || renewal === undefined) {
        if (verdict.kind === 'misplaced') await fromStream(payment.refused(verdict.place))
        else payment.returned()
        return response
      }
      await response.body?.cancel()
      try {
        if (renewal !== undefined) await this.#renew(key, renewal.price, renewal.required)
      } catch (error) {
        payment.returned()
        throw error
      }
      price = renewal?.price ?? price
      renewed ||= renewal !== undefined
      if (verdict.kind === 'misplaced') {
        corrected = true
        payment = await fromStream(payment.retried(verdict.place, requestOf(price, call)))
      } else {
        payment.returned()
        payment = await fromStream(this.#options.payer.pay(requestOf(price, call)))
      }
    }
  }

  /** What a refusal quotes anew, where that is another price, and one that the stream can pay. */
  #renewal(key: string, price: Price, response: Response): { price: Price; required: PaymentRequired } | undefined {
    const required = quoteOf(response)
    if (required === undefined) return undefined
    const offer = chooseStream(required, this.#options.payer)
    if ('problem' in offer) {
      this.#prices.delete(key)
      return undefined
    }
    return sameOffer(offer, price.offer) ? undefined : { price: { url: price.url, offer }, required }
  }

  async #renew(key: string, price: Price, required: PaymentRequired): Promise<void> {
    this.#prices.delete(key)
    await this.#agree(price, required)
    this.#remember(key, price)
  }

  /** Sends a payment until there is an answer: once more where the connection broke, and while the seller is busy. */
  async #send(call: Call, price: Price, payment: StreamPayment): Promise<Answer> {
    const { fetch, patienceSeconds, onPayment } = this.#options
    const { url, offer } = price
    try {
      this.#charged.take(payment, new URL(url).host)
    } catch (error) {
      payment.returned()
      throw error
    }
    onPayment({ stream: payment.stream, position: payment.position, amount: offer.amount, payee: offer.payee, url })
    const headers = { [PAYMENT_SIGNATURE]: headerOf(price, payment) }
    const giveUpAt = Date.now() + patienceSeconds * 1_000
    let resent = false
    let perhapsSent = false
    try {
      for (;;) {
        try {
          const response = await fetch(call.request({ url, redirect: 'manual', headers }))
          const settlement = readSettlement(response)
          const waitMs = retryAfterMs(response) ?? RETRY_MS
          if (!isBusy(response, settlement) || Date.now() + waitMs > giveUpAt) return { response, settlement, resent: perhapsSent }
          await response.body?.cancel()
          await pause(waitMs, call.signal)
        } catch (cause) {
          call.signal.throwIfAborted()
          perhapsSent ||= !neverConnected(cause)
          if (resent) throw perhapsSent ? unknownOutcome(payment, cause) : cause
          resent = true
          await pause(RESEND_AFTER_MS, call.signal)
        }
      }
    } catch (error) {
      this.#charged.keep(payment)
      // A seller takes a moment to see that a caller is gone, and gives the step back then. Who came at once with the same
      // step would be told that it is used, and with the next one that it is not.
      if (call.signal.aborted) setTimeout(() => payment.lost(), AFTER_ABORT_MS)
      else payment.lost()
      throw error
    }
  }
}

function keyOf({ method, url }: Call): string {
  return `${method} ${url.split('#', 1)[0]}`
}

function requestOf({ offer: { steps, window } }: Price, { signal }: Call): StreamPayRequest {
  return { steps, window, signal }
}

function headerOf({ offer: { requirements } }: Price, payment: StreamPayment): string {
  return encodePayment({ x402Version: X402_VERSION, accepted: requirements, payload: streamPayload(payment) })
}

/** A stream that cannot pay is why a call is not paid. */
async function fromStream<T>(paying: Promise<T>): Promise<T> {
  try {
    return await paying
  } catch (error) {
    if (error instanceof StreamError) throw new PaymentError(error.code, error.message, { cause: error })
    throw error
  }
}

function answerLost(payment: StreamPayment): PaymentError {
  return new PaymentError(
    'answer_lost',
    `${stepsOf(payment)} paid for this call, and the answer was lost on the way; make the call again to pay for another`,
  )
}

function unknownOutcome(payment: StreamPayment, cause: unknown): PaymentError {
  const trouble = messageOf(cause instanceof TypeError && cause.cause !== undefined ? cause.cause : cause)
  return new PaymentError(
    'outcome_unknown',
    `${stepsOf(payment)} perhaps paid for this call: ${trouble}. The next call from this stream sends the same payment`,
    { cause },
  )
}

function stepsOf({ stream, first, position }: StreamPayment): string {
  const name = `stream ${shortId(stream)}`
  return first === position ? `position ${position} of ${name} was` : `positions ${first} to ${position} of ${name} were`
}

/** What every connection that was never made ends with: nothing was sent on it. */
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

function neverConnected(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string' && NEVER_CONNECTED.has(at.code)) return true
  }
  return false
}
