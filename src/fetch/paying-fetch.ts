import { InputError, type Id, type MicroUsd } from '../codec/index.js'
import { httpTransport, type NodeTransport } from '../light/index.js'
import { createNodeClient, type StreamPayer, type Wallet } from '../sdk/index.js'
import type { PaymentRequired } from '../x402/wire.js'
import { memoryAttempts, type AttemptLog } from './attempts.js'
import { Budget, type Caps } from './budget.js'
import { readCall, type Call } from './call.js'
import { PaymentError } from './errors.js'
import { ExactCaller } from './exact-caller.js'
import { quoteOf } from './offer.js'
import { checkRedirect } from './redirect.js'
import { StreamCaller } from './stream/stream-caller.js'

export interface PayingFetchOptions extends Caps {
  /** Who pays, with a transaction for each request. Not needed where all is paid from a stream. */
  wallet?: Wallet
  /** Pays from this stream wherever a server takes it; elsewhere with the wallet, if there is one. Its owner closes it. */
  stream?: StreamPayer
  /** The ledger node, by address or transport. Default `http://127.0.0.1:8730`. */
  node?: string | NodeTransport
  /** The chain identity to pay on. Without it the node vouches for itself. */
  chain?: Id
  /** Sees a quote before anything is signed; a text refuses it, and says why. */
  onQuote?: (quote: Quote) => void | string | Promise<void | string>
  /** Called when a payment has been made ready and before it is sent. */
  onPayment?: (payment: Payment) => void
  /** How long the same payment is sent again while its outcome is unknown. Default 60. */
  patienceSeconds?: number
  /** Where payments are written down before they are sent. Default: in memory. */
  attempts?: AttemptLog
  fetch?: typeof globalThis.fetch
}

/** A payment, by the transaction that was signed or by the position in its stream. */
export interface Payment {
  readonly transaction?: Id
  readonly stream?: Id
  readonly position?: number
  /** Micro-USD. */
  readonly amount: MicroUsd
  readonly payee: Id
  readonly url: string
}

/** What a server asks for one request, and for every later one to the same URL where it is paid from a stream. */
export interface Quote {
  readonly url: string
  /** Micro-USD. */
  readonly amount: MicroUsd
  readonly payee: Id
  readonly scheme: 'exact' | 'stream'
  readonly required: PaymentRequired
}

export interface PayingFetch {
  (input: RequestInfo | URL, init?: RequestInit): Promise<Response>
  /** Micro-USD signed so far. */
  spent(): MicroUsd
}

/**
 * A fetch that pays: it learns the price from the 402, checks it against the caps, signs exactly that, sends the request
 * once more with the payment, and returns the ordinary Response; `settlementOf(response)` has what the server said of
 * the payment. One call pays once: while a payment's fate is unknown the same payment is sent again, and only for the
 * same call.
 *
 * From a stream, calls to a URL after its first one are paid up front, without a 402; and at the same time, if the server
 * offers a window, else one after the other.
 *
 * @throws InputError for options that cannot be. From a call: PaymentError, see its codes; TypeError from fetch where the
 *   server cannot be reached and nothing was sent; the signal's reason. After an abort, as after `outcome_unknown`, the same call goes on with the same payment.
 */
export function payingFetch(options: PayingFetchOptions): PayingFetch {
  const { wallet, stream, node = 'http://127.0.0.1:8730', chain = stream?.terms.chain, onQuote, onPayment = () => {} } = options
  const { attempts = memoryAttempts(), fetch = globalThis.fetch, patienceSeconds = 60 } = options
  if (wallet === undefined && stream === undefined) throw new InputError('wallet', 'who pays? Give a wallet, a stream, or both')
  if (stream !== undefined && chain !== stream.terms.chain) throw new InputError('stream', `it is on chain ${stream.terms.chain}, not on ${chain}`)
  const budget = new Budget(options)

  const show = (scheme: Quote['scheme']) => async (offer: Omit<Quote, 'scheme'>) => {
    const refused = await onQuote?.({ ...offer, scheme })
    if (typeof refused === 'string') throw new PaymentError('quote_refused', refused)
  }
  const common = { budget, fetch, patienceSeconds, onPayment }
  const streams = stream === undefined ? undefined : new StreamCaller({ ...common, payer: stream, show: show('stream') })
  const ledger = createNodeClient(typeof node === 'string' ? httpTransport(node) : node)
  const exact = wallet === undefined ? undefined : new ExactCaller({ ...common, wallet, ledger, chain, attempts, show: show('exact') })
  const payer = `${wallet?.account ?? stream?.terms.stream} ${options.chain ?? ''}`

  /** The call without a payment, and then with the one that its 402 asks for. */
  async function askAndPay(call: Call): Promise<Response> {
    const first = await fetch(call.request())
    if (first.status !== 402) return first
    const required = quoteOf(first)
    if (required === undefined) return first
    await first.body?.cancel()
    const url = first.url === '' ? call.url : first.url
    checkRedirect(call, url)
    const paid = await streams?.quoted(call, url, required)
    if (paid !== undefined && !('problem' in paid)) return paid
    if (exact !== undefined) return exact.quoted(call, url, required)
    throw new PaymentError('no_payable_offer', paid?.problem ?? 'nobody pays')
  }

  const call = async (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => {
    const call = await readCall(payer, input, init)
    const resumed = await exact?.resume(call)
    if (resumed !== undefined) return resumed
    return streams === undefined ? askAndPay(call) : streams.call(call, () => askAndPay(call))
  }
  return Object.assign(call, { spent: () => budget.spent })
}
