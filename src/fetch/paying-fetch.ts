import { messageOf, type Id, type MicroUsd } from '../codec/index.js'
import { httpTransport, type NodeTransport } from '../light/index.js'
import { buildTransfer, createNodeClient, signTransaction, type Wallet } from '../sdk/index.js'
import { purposeOf } from '../x402/quote.js'
import type { PaymentRequired } from '../x402/wire.js'
import { memoryAttempts, type Attempt, type AttemptLog } from './attempts.js'
import { Budget, type Caps } from './budget.js'
import { readCall, type Call } from './call.js'
import { PaymentError } from './errors.js'
import { chooseExact, quoteOf, type Offer } from './offer.js'
import { redeem } from './redeem.js'
import { amountOf, ticketFor } from './ticket.js'

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

/**
 * A fetch that pays: it learns the price from the 402, checks it against the caps, signs exactly that, sends the request
 * once more with the payment, and returns the ordinary Response; `settlementOf(response)` has what the server said of
 * the payment. One call pays once: while a payment's fate is unknown the same payment is sent again, and only for the
 * same call.
 *
 * @throws (from a call) PaymentError, see its codes; TypeError from fetch where the server cannot be reached unpaid; the
 *   signal's reason. After an abort, as after `outcome_unknown`, the same call goes on with the same payment.
 */
export function payingFetch(options: PayingFetchOptions): PayingFetch {
  const { wallet, node = 'http://127.0.0.1:8730', chain: pinned, onQuote, onPayment, patienceSeconds = 60 } = options
  const { attempts = memoryAttempts(), fetch = globalThis.fetch } = options
  const budget = new Budget(options)
  const ledger = createNodeClient(typeof node === 'string' ? httpTransport(node) : node)
  const redeeming = { fetch, ledger, wallet, attempts, patienceSeconds }
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
      const account = await ledgerAnswer(ledger.account(wallet.account, { signal: call.signal }), call.signal)
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
      const attempt = await ticketFor(wallet, url, offer.requirements, signed, account.dual)
      onPayment?.({ transaction: signed.digest, amount: offer.amount, payee: offer.payee, url })
      // Last: what is written down will be sent, now or by the next call.
      await attempts.save(call.key, attempt)
      return attempt
    } catch (error) {
      budget.giveBack(offer.amount, host)
      throw error
    }
  }

  async function resume(call: Call, earlier: Attempt): Promise<Response> {
    try {
      budget.checkEarlier(amountOf(earlier), earlier.transaction)
    } catch (error) {
      await attempts.release(call.key, earlier)
      throw error
    }
    return redeem(call, earlier, redeeming)
  }

  const call = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const call = await readCall(`${wallet.account} ${pinned ?? ''}`, input, init)
    const earlier = await attempts.take(call.key)
    if (earlier !== undefined) return resume(call, earlier)

    const first = await fetch(call.request())
    if (first.status !== 402) return first
    const required = quoteOf(first)
    if (required === undefined) return first
    await first.body?.cancel()
    const url = first.url === '' ? call.url : first.url
    checkRedirect(call, url)
    const offer = chooseExact(required, await theChain())
    return redeem(call, await pay(call, url, offer, required), redeeming)
  }
  return Object.assign(call, { spent: () => budget.spent })
}

/** A call that was redirected pays only where the caller has business, and where it is the same call. */
function checkRedirect(call: Call, url: string): void {
  if (url === call.url.split('#', 1)[0]) return
  const { origin } = new URL(url)
  const from = new URL(call.url).origin
  if (origin !== from) {
    throw new PaymentError('redirected', `${from} sent this call to ${origin}, which asks for money: call that address itself if you mean it`)
  }
  if (call.method !== 'GET' && call.method !== 'HEAD') {
    throw new PaymentError('redirected', `this ${call.method} was redirected to ${url}, which asks for money: call that address itself if you mean it`)
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
