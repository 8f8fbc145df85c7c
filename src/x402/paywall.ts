import { describe, InputError, messageOf, SionError, textToBase64, type Id, type MicroUsd } from '../codec/index.js'
import { networkOf } from '../pulse/index.js'
import { CODES, isCode, refuse, type Code, type Refusal } from './codes.js'
import { decodePayment, encodeSettlement, PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE } from './headers.js'
import { silent, type Logger } from './logger.js'
import { paywallPage, prefersHtml } from './page.js'
import { parsePrice, usd, type Price } from './price.js'
import { requiredOf } from './required.js'
import { replayKey, type KeptAnswer, type Replays } from './replays.js'
import type { Accepted, Charge, SellerScheme } from './scheme.js'
import { X402_VERSION, type SettleResponse } from './wire.js'

/** A request as the paywall sees it, whatever the framework. */
export interface PaidRequest {
  readonly method: string
  /** The request's path with query, as it came. */
  readonly target: string
  header(name: string): string | undefined
}

/** A complete answer that is not the handler's. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/**
 * What becomes of a request: it passes unpriced, is answered here, gets again what its payment bought before, or is paid
 * and goes to the handler.
 */
export type Admission =
  | { readonly kind: 'free' }
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'again'; readonly answer: KeptAnswer }
  | PaidAdmission

export interface PaidAdmission {
  readonly kind: 'paid'
  readonly settlement: SettleResponse
  /**
   * Call with the handler's status when its head is ready and none of its bytes have left. An answer replaces the
   * handler's; otherwise these headers go with it. From 500 on the payment is good again and the headers are empty.
   */
  finish(status: number): Promise<{ headers: Record<string, string> } | { answer: Answer }>
  /**
   * {@link finish} for a payment that nothing can take from this request any more, so that nothing needs to be held back
   * for it. Absent for others.
   */
  finishNow?(status: number): Record<string, string>
  /**
   * Where the seller gives bought answers again: call with the answer, whole and as it leaves. What is too long for that
   * is forgotten.
   */
  keep?(answer: KeptAnswer): void
  /**
   * The handler threw, or its client went away before any byte left, be it after `finish`: the same payment is good again.
   * Does nothing a second time.
   */
  release(): Promise<void>
}

/** What is sold on one route. `R` is the framework's request. */
export interface RouteTerms<R> {
  /** Decimal USD such as `"0.25"`, or `"free"`, or either computed from the request. */
  readonly price: Price | ((request: R) => Price | Promise<Price>)
  /** What the money buys, for people. Default: `<path>, <price> USD per request`. */
  readonly description?: string
  /** The answer's media type. Default `application/json`. */
  readonly mimeType?: string
}

/** A priced route. */
export interface Route<R> {
  /** At once where nobody needs to be waited for. Rejects with what a computed price throws. */
  admit(request: PaidRequest, native: R): Admission | Promise<Admission>
}

export interface PaywallOptions {
  /** The chain to be paid on; throws (`ledger_unavailable`, …) while that is not known, and routes stay closed. */
  readonly chain: () => Promise<Id>
  /** In the order in which a 402 offers them. */
  readonly schemes: readonly SellerScheme[]
  /** Public origin such as `https://api.example.com`; the `Host` header is never believed. */
  readonly origin?: string
  /** Gives a bought answer again to the same payment and request; absent: never. */
  readonly replays?: Replays
  readonly logger: Logger
}

const RETRY_AFTER_SECONDS = '2'

/**
 * The seller's side of x402 without a framework: quotes a 402 and lets through what is paid. A route takes a price alone,
 * or all its terms.
 */
export function createPaywall(options: PaywallOptions): { route<R>(terms: Price | RouteTerms<R>): Route<R> } {
  return { route: (terms) => createRoute(options, checkTerms(terms)) }
}

const TERMS = new Set(['price', 'description', 'mimeType'])

/** Terms are checked when the route is built, not at its first request. */
function checkTerms<R>(terms: Price | RouteTerms<R>): RouteTerms<R> {
  if (typeof terms === 'string') return checkTerms({ price: terms })
  if (typeof terms !== 'object' || terms === null) throw new InputError('price', `expected USD as decimal text such as "0.25", or a route’s terms, not ${describe(terms)}`)
  for (const name of Object.keys(terms)) if (!TERMS.has(name)) throw new InputError(name, 'not one of a route’s terms')
  for (const name of ['description', 'mimeType'] as const) {
    const text = terms[name]
    if (text !== undefined && typeof text !== 'string') throw new InputError(name, `expected text, not ${describe(text)}`)
  }
  if (typeof terms.price !== 'function') parsePrice(terms.price)
  return terms
}

function createRoute<R>({ chain, schemes, origin, replays, logger }: PaywallOptions, terms: RouteTerms<R>): Route<R> {
  const { price } = terms
  const priced = typeof price === 'function' ? price : parsePrice(price)

  const required = requiredOf({ schemes, origin, description: terms.description, mimeType: terms.mimeType })

  /** Known once it was asked for; a chain's identity does not change. */
  let chainNow: Id | undefined

  function chargeFor(request: PaidRequest, amount: MicroUsd, on: Id): Charge {
    return { method: request.method === 'HEAD' ? 'GET' : request.method, target: targetOf(request.target), amount, chain: on }
  }

  /** The answer to an unpaid request where nobody needs to be waited for, as for nearly all of them. */
  function quoteNow(request: PaidRequest): Admission | undefined {
    if (chainNow === undefined || typeof priced === 'function') return undefined
    if (request.header(PAYMENT_SIGNATURE) !== undefined || prefersHtml(request.header('accept'))) return undefined
    const charge = chargeFor(request, priced, chainNow)
    const json = required.now(charge, pathIn(charge.target))
    return json === undefined ? undefined : { kind: 'answer', answer: quoted('application/json', json, json) }
  }

  async function quote402(request: PaidRequest, charge: Charge, refusal?: Refusal): Promise<Answer> {
    const body = await required.of(charge, pathIn(charge.target), refusal?.reason)
    const json = JSON.stringify(body)
    const page = prefersHtml(request.header('accept'))
    const answer = page
      ? quoted('text/html; charset=utf-8', paywallPage(body, charge.amount), json)
      : quoted('application/json', json, json)
    if (refusal === undefined) return answer
    return { ...answer, headers: { ...answer.headers, [PAYMENT_RESPONSE]: refusedSettlement(refusal, charge.chain) } }
  }

  async function refused(request: PaidRequest, charge: Charge, refusal: Refusal): Promise<Answer> {
    switch (CODES[refusal.code].status) {
      case 400:
        return unreadable(refusal.code, refusal.reason)
      case 402:
        return quote402(request, charge, refusal)
      case 503:
        return unavailable(refusal.code, refusal.reason, refusedSettlement(refusal, charge.chain))
    }
  }

  async function admitPriced(request: PaidRequest, amount: MicroUsd): Promise<Admission> {
    const header = request.header(PAYMENT_SIGNATURE)
    chainNow = await chain()
    const charge = chargeFor(request, amount, chainNow)
    if (header === undefined) return { kind: 'answer', answer: await quote402(request, charge) }

    const key = replays === undefined ? undefined : replayKey(request.method, charge.target, header)
    const kept = key === undefined ? undefined : replays?.get(key)
    if (kept !== undefined) return { kind: 'again', answer: kept }
    const taken = await take(header, charge)
    if ('answer' in taken) return { kind: 'answer', answer: taken.answer }
    if (taken.kind === 'refused') {
      logger.info(`${charge.method} ${pathIn(charge.target)}: payment refused, ${taken.code}${taken.payer === undefined ? '' : `, payer ${taken.payer}`}`)
      return { kind: 'answer', answer: await refused(request, charge, taken) }
    }
    return paid(request, charge, taken, key)
  }

  /** A payment taken or refused; an answer where the header cannot be read or something is broken. */
  async function take(header: string, charge: Charge): Promise<Accepted | Refusal | { answer: Answer }> {
    try {
      for (const scheme of schemes) {
        const taken = scheme.takePlain?.(header, charge)
        if (taken !== undefined) return await taken
      }
      const payment = decodePayment(header)
      const { scheme: wanted } = payment.accepted
      const scheme = schemes.find((known) => known.scheme === wanted)
      if (scheme === undefined) {
        return refuse('unsupported_scheme', `the scheme ${JSON.stringify(wanted.slice(0, 32))} is not taken here`)
      }
      const taken = await scheme.take(payment, charge)
      if (taken.kind === 'accepted') scheme.learnPlain?.(header, charge)
      return taken
    } catch (error) {
      // With a word on the payment: a client must be able to tell this 503 from a proxy's.
      if (!(error instanceof InputError)) return { answer: brokenAnswer(error, logger, charge.chain) }
      return { answer: unreadable(isCode(error.code) ? error.code : 'invalid_payload', error.message) }
    }
  }

  function paid(request: PaidRequest, charge: Charge, accepted: Accepted, replay: string | undefined): PaidAdmission {
    const { settlement } = accepted
    const what = (): string =>
      `${charge.method} ${pathIn(charge.target)}: ${usd(charge.amount)} from ${settlement.payer ?? 'unknown'}, ${settlement.transaction || 'no transaction'}`

    function failed(status: number): Promise<void> {
      logger.warn(`${what()}: answered ${status}, the payment stays good`)
      return accepted.release()
    }

    function served(status: number): Record<string, string> {
      // Unheard, the sentence would cost as much as the hash.
      if (logger !== silent) logger.info(`${what()}: served ${status}`)
      return { [PAYMENT_RESPONSE]: encodeSettlement(settlement) }
    }

    const { serveNow } = accepted
    return {
      kind: 'paid',
      settlement,
      async finish(status) {
        if (status >= 500) {
          await failed(status)
          return { headers: {} }
        }
        try {
          const lost = await accepted.serve()
          if (lost !== undefined) return { answer: await refused(request, charge, lost) }
        } catch (error) {
          await accepted.release()
          return { answer: brokenAnswer(error, logger, charge.chain) }
        }
        return { headers: served(status) }
      },
      ...(serveNow === undefined
        ? {}
        : {
            finishNow(status: number) {
              if (status >= 500) {
                void failed(status)
                return {}
              }
              serveNow()
              return served(status)
            },
          }),
      ...(replay === undefined ? {} : { keep: (answer: KeptAnswer) => replays?.keep(replay, answer) }),
      async release() {
        logger.info(`${what()}: nothing was delivered, the payment stays good`)
        await accepted.release()
      },
    }
  }

  async function admitAfterWaiting(request: PaidRequest, native: R): Promise<Admission> {
    const amount = typeof priced === 'function' ? parsePrice(await priced(native)) : priced
    if (amount === 0n) return { kind: 'free' }
    try {
      return await admitPriced(request, amount)
    } catch (error) {
      return { kind: 'answer', answer: brokenAnswer(error, logger) }
    }
  }

  return {
    admit(request, native) {
      if (price === 'free') return { kind: 'free' }
      // A preflight asks whether it may ask: it costs nothing, and gives nothing away. It goes no further, since a handler
      // for every method would answer it with what is sold.
      if (request.method === 'OPTIONS') return { kind: 'answer', answer: { status: 204, headers: {}, body: '' } }
      return quoteNow(request) ?? admitAfterWaiting(request, native)
    },
  }
}

function quoted(contentType: string, body: string, json: string): Answer {
  return {
    status: 402,
    headers: { 'Content-Type': contentType, 'Cache-Control': 'no-store', [PAYMENT_REQUIRED]: textToBase64(json) },
    body,
  }
}

/** Path with query of a request target: an absolute-form target (RFC 9112 §3.2.2) loses its origin, which is a claim. */
function targetOf(target: string): string {
  const absolute = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i.exec(target)
  const rest = absolute === null ? target : target.slice(absolute[0].length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

function pathIn(target: string): string {
  return target.split(/[?#]/, 1)[0] ?? '/'
}

function refusedSettlement(refusal: Refusal, chain: Id): string {
  return encodeSettlement({
    success: false,
    errorReason: refusal.reason,
    ...(refusal.payer === undefined ? {} : { payer: refusal.payer }),
    transaction: refusal.transaction ?? '',
    network: networkOf(chain),
    extensions: { sion: { ...refusal.details, code: refusal.code } },
  })
}

function unreadable(code: Code, reason: string): Answer {
  return json(400, { x402Version: X402_VERSION, error: reason, code }, { 'Cache-Control': 'no-store' })
}

function unavailable(code: Code, reason: string, paymentResponse?: string): Answer {
  return json(503, { x402Version: X402_VERSION, error: reason, code }, {
    'Cache-Control': 'no-store',
    'Retry-After': RETRY_AFTER_SECONDS,
    ...(paymentResponse === undefined ? {} : { [PAYMENT_RESPONSE]: paymentResponse }),
  })
}

/** What something broken looks like from outside: closed, for now. The cause goes to the log. */
function brokenAnswer(error: unknown, logger: Logger, chain?: Id): Answer {
  logger.error(`a priced request was turned away: ${messageOf(error)}`)
  const code = error instanceof SionError && isCode(error.code) && CODES[error.code].status === 503 ? error.code : 'facilitator_unavailable'
  const reason = REASONS[code] ?? 'the payment system is out of reach'
  return unavailable(code, reason, chain === undefined ? undefined : refusedSettlement(refuse(code, reason), chain))
}

const REASONS: Partial<Record<Code, string>> = {
  store_unavailable: 'the seller’s payment store is out of reach; nothing was accepted',
  store_contended: 'the seller’s payment store is overloaded; nothing was accepted',
  store_newer_format: 'the seller’s payment store is of a newer version; nothing was accepted',
  ledger_unavailable: 'the ledger is out of reach; nothing was accepted',
  facilitator_unavailable: 'the payment system is out of reach; nothing was accepted',
  settlement_pending: 'settlement_pending',
}

function json(status: number, body: object, headers: Record<string, string>): Answer {
  return { status, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) }
}
