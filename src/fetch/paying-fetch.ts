import { fromBase64, messageOf, toBase64, type Id, type MicroUsd } from '../codec/index.js'
import { httpTransport, type NodeTransport } from '../light/index.js'
import { buildTransfer, createNodeClient, signTransaction, type NodeClient, type Signed, type Wallet } from '../sdk/index.js'
import { referenceMessage, referencePayload, transactionPayload } from '../x402/exact/payment.js'
import { SETTLEMENT_PENDING } from '../x402/facilitator.js'
import { encodePayment, PAYMENT_SIGNATURE } from '../x402/headers.js'
import { expiryOf, purposeOf, QUOTE_SECONDS } from '../x402/quote.js'
import { X402_VERSION, type PaymentRequired, type SettleResponse } from '../x402/wire.js'
import { memoryAttempts, type Attempt, type AttemptLog } from './attempts.js'
import { Budget, type Caps } from './budget.js'
import { readCall, type Call } from './call.js'
import { PaymentError } from './errors.js'
import { chooseExact, quoteOf, type Offer } from './offer.js'
import { attachSettlement, readSettlement } from './settlement.js'

export interface PayingFetchOptions extends Caps {
  /** Who pays. */
  wallet: Wallet
  /** The ledger node, by address or transport. Default `http://127.0.0.1:8730`. */
  node?: string | NodeTransport
  /** The chain identity to pay on. Without it the node vouches for itself. */
  chain?: Id
  /** Sees a quote before anything is signed; a text refuses it, and says why. */
  onQuote?: (quote: Quote) => void | string | Promise<void | string>
  /** Called when a payment has been signed and before it is sent. */
  onPayment?: (payment: { transaction: Id; amount: MicroUsd; payee: Id; url: string }) => void
  /** How long the same payment is sent again while its outcome is unknown. Default 60. */
  patienceSeconds?: number
  /** Where payments are written down before they are sent. Default: in memory. */
  attempts?: AttemptLog
  fetch?: typeof globalThis.fetch
}

/** What a server asks for one request. */
export interface Quote {
  readonly url: string
  /** Micro-USD. */
  readonly amount: MicroUsd
  readonly payee: Id
  readonly scheme: 'exact'
  readonly required: PaymentRequired
}

export interface PayingFetch {
  (input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  /** Micro-USD signed so far. */
  spent(): MicroUsd
}

/** A payment is executed within this many Pulses or never. At four a second that is half of a quote's life. */
const VALIDITY_PULSES = 600
/** nginx reads a header line into one 8 KiB buffer: name, colon, space, value, line end. */
const HEADER_LINE_BYTES = 8_192
const RETRY_MS = 1_000

/**
 * A fetch that pays: it learns the price from the 402, checks it against the caps, signs exactly that, sends the request
 * once more with the payment, and returns the ordinary Response; `settlementOf(response)` has what the server said of
 * the payment. One call pays once: while a payment's fate is unknown the same payment is sent again, and only for the
 * same call.
 *
 * @throws (from a call) PaymentError, see its codes; TypeError from fetch where the server cannot be reached unpaid.
 */
export function payingFetch(options: PayingFetchOptions): PayingFetch {
  const { wallet, node = 'http://127.0.0.1:8730', chain: pinned, onQuote, onPayment, patienceSeconds = 60 } = options
  const { attempts = memoryAttempts(), fetch = globalThis.fetch } = options
  const budget = new Budget(options)
  const ledger = createNodeClient(typeof node === 'string' ? httpTransport(node) : node)
  /** Calls under way by key: a second one for the same call must not pick up the first one's attempt. */
  const paying = new Set<string>()
  let chain: Promise<Id> | undefined

  function theChain(): Promise<Id> {
    chain ??= pinned === undefined ? ledgerAnswer(ledger.status().then((status) => status.chain)) : Promise.resolve(pinned)
    chain.catch(() => {
      chain = undefined
    })
    return chain
  }

  async function pay(call: Call, url: string, offer: Offer, required: PaymentRequired): Promise<Attempt> {
    const { host } = new URL(url)
    budget.take(offer.amount, host)
    try {
      const refused = await onQuote?.({ url, amount: offer.amount, payee: offer.payee, scheme: 'exact', required })
      if (typeof refused === 'string') throw new PaymentError('quote_refused', refused)
      const account = await ledgerAnswer(ledger.account(wallet.account))
      const body = buildTransfer({
        wallet,
        chain: await theChain(),
        pulse: account.pulse,
        to: offer.payee,
        amount: offer.amount,
        purpose: purposeOf(offer.nonce),
        validForPulses: VALIDITY_PULSES,
      })
      const signed = await signTransaction(wallet, body, account)
      const attempt = await attemptFor(signed, offer, account.dual)
      await attempts.save(call.key, attempt)
      onPayment?.({ transaction: signed.digest, amount: offer.amount, payee: offer.payee, url })
      return attempt
    } catch (error) {
      budget.giveBack(offer.amount, host)
      throw error
    }
  }

  async function attemptFor(signed: Signed, offer: Offer, dual: boolean): Promise<Attempt> {
    const goodUntil = Math.min(expiryOf(offer.nonce) * 1_000, Date.now() + QUOTE_SECONDS * 1_000) + 3_600_000
    const header = encodePayment(payment(offer, transactionPayload(signed.transaction)))
    if (!dual && PAYMENT_SIGNATURE.length + 2 + header.length + 2 <= HEADER_LINE_BYTES) {
      return { header, transaction: signed.digest, goodUntil }
    }
    return referenceFor(signed.digest, toBase64(signed.bytes), offer, goodUntil)
  }

  async function referenceFor(digest: Id, submit: string, offer: Offer, goodUntil: number): Promise<Attempt> {
    const { mlDsa } = await wallet.sign(referenceMessage(digest, offer.nonce))
    return { header: encodePayment(payment(offer, referencePayload(digest, mlDsa))), transaction: digest, submit, goodUntil }
  }

  /** Sends the call with its payment until there is an answer or patience ends. Always the same payment. */
  async function redeem(call: Call, url: string, attempt: Attempt): Promise<Response> {
    const giveUpAt = Date.now() + patienceSeconds * 1_000
    for (;;) {
      let trouble: string
      let waitMs = RETRY_MS
      try {
        if (attempt.submit !== undefined) await submitOwn(ledger, attempt.submit)
        const response = await fetch(call.request({ url, redirect: 'manual', headers: { [PAYMENT_SIGNATURE]: attempt.header } }))
        const settlement = readSettlement(response)
        if (!isPending(response, settlement)) return finish(call, url, response, settlement)
        trouble = 'the server does not know the outcome yet'
        waitMs = retryAfterMs(response) ?? RETRY_MS
        await response.body?.cancel()
      } catch (cause) {
        if (isAborted(cause) || cause instanceof PaymentError) throw cause
        trouble = messageOf(cause)
      }
      if (Date.now() + waitMs > giveUpAt) {
        throw new PaymentError(
          'outcome_unknown',
          `transaction ${attempt.transaction} may have been paid: ${trouble}. Make the same call again: it sends the same payment`,
        )
      }
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }

  async function finish(call: Call, url: string, response: Response, settlement: SettleResponse | undefined): Promise<Response> {
    // A handler that failed leaves the payment good: the same call, made again, sends it again.
    if (response.status < 500) await attempts.clear(call.key)
    const location = response.headers.get('location')
    if (response.status < 300 || response.status >= 400 || location === null || call.redirect !== 'follow') return response
    // The redirect was bought; where it leads, the payment does not go.
    await response.body?.cancel()
    return attachSettlement(await fetch(new URL(location, url)), settlement)
  }

  async function paidCall(call: Call): Promise<Response> {
    const earlier = await attempts.load(call.key)
    if (earlier !== undefined && earlier.goodUntil > Date.now()) return redeem(call, call.url, earlier)

    const first = await fetch(call.request())
    if (first.status !== 402) return first
    const required = quoteOf(first)
    if (required === undefined) return first
    await first.body?.cancel()
    const url = first.url === '' ? call.url : first.url
    if (new URL(url).origin !== new URL(call.url).origin) {
      throw new PaymentError('redirected', `${new URL(call.url).origin} sent this call to ${new URL(url).origin}, which asks for money: call that address itself if you mean it`)
    }
    const offer = chooseExact(required, await theChain())
    return redeem(call, url, await pay(call, url, offer, required))
  }

  const call = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const wanted = await readCall(input, init)
    // Two equal calls at once are two calls: the second is told apart, or it would take the first one's ticket.
    let { key } = wanted
    for (let n = 2; paying.has(key); n++) key = `${wanted.key}-${n}`
    paying.add(key)
    try {
      return await paidCall({ ...wanted, key })
    } finally {
      paying.delete(key)
    }
  }
  return Object.assign(call, { spent: () => budget.spent })
}

function payment(offer: Offer, payload: Record<string, unknown>): Parameters<typeof encodePayment>[0] {
  return { x402Version: X402_VERSION, accepted: offer.requirements, payload }
}

/** Submits a transaction that is paid by reference; sent again it is the same one. */
async function submitOwn(ledger: NodeClient, bytes: string): Promise<void> {
  const submitted = await ledger.submit(fromBase64(bytes, 'transaction'))
  if (submitted.kind === 'refused' && submitted.code !== 'expired') {
    throw new PaymentError('ledger_unavailable', `the ledger refused the payment: ${submitted.reason}`)
  }
}

function isPending({ status }: Response, settlement: SettleResponse | undefined): boolean {
  if (status !== 503) return false
  return settlement === undefined || settlement.errorReason === SETTLEMENT_PENDING || !settlement.success
}

function retryAfterMs(response: Response): number | undefined {
  const seconds = Number(response.headers.get('retry-after') ?? Number.NaN)
  return Number.isFinite(seconds) && seconds >= 0 ? Math.min(seconds, 10) * 1_000 : undefined
}

function isAborted(error: unknown): boolean {
  return error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
}

async function ledgerAnswer<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (cause) {
    throw new PaymentError('ledger_unavailable', `nothing was paid: ${messageOf(cause)}`, { cause })
  }
}
