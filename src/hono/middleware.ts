import type { Context, MiddlewareHandler } from 'hono'
import { createSeller, type SellerOptions, type Verifier } from '../facilitator/seller.js'
import { corsHeaders, keptOnReplacement, privateCacheControl } from '../x402/answer-headers.js'
import type { Admission, Answer, PaidAdmission, Route, RouteTerms } from '../x402/paywall.js'
import type { Price } from '../x402/price.js'
import { keptHeaders, MAX_KEPT_BYTES, type KeptAnswer } from '../x402/replays.js'
import type { Charge } from './types.js'

/** The seller's middleware, over the signatures that the entry point chose for its runtime. */
export function sellWith(options: SellerOptions, signatures: () => Verifier): Charge {
  const seller = createSeller(options, signatures)
  const charge = (terms: Price | RouteTerms<Context>): MiddlewareHandler => {
    const route = seller.route<Context>(terms)
    return (context, next) => handle(route, context, next)
  }
  return Object.assign(charge, { ready: () => seller.ready(), close: () => seller.close() })
}

function handle(route: Route<Context>, context: Context, next: () => Promise<void>): Promise<void> {
  const admission = route.admit(
    {
      method: context.req.method,
      target: targetOf(context.req.url),
      header: (name) => context.req.header(name),
    },
    context,
  )
  return 'then' in admission ? admission.then((known) => proceed(context, known, next)) : proceed(context, admission, next)
}

async function proceed(context: Context, admission: Admission, next: () => Promise<void>): Promise<void> {
  switch (admission.kind) {
    case 'free':
      return next()
    case 'answer':
      return answer(context, admission.answer, context.res.headers)
    case 'again':
      return sellAgain(context, admission.answer)
    case 'paid':
      return sell(context, admission, next)
  }
}

/** Gives what was bought before, with the headers it had. */
function sellAgain(context: Context, { status, headers, body }: KeptAnswer): void {
  const all = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const each of Array.isArray(value) ? value : [value]) all.append(name, each)
  }
  context.res = undefined
  context.res = new Response(body.length === 0 ? null : body.slice(), { status, headers: all })
}

/** Lets the handler answer and holds its response back until the payment has bought it. */
async function sell(context: Context, admission: PaidAdmission, next: () => Promise<void>): Promise<void> {
  const client = clientOf(context)
  if (client.gone()) return release(context, admission)
  const unwatch = client.onGone(() => void admission.release())
  try {
    await next()
  } catch (error) {
    await admission.release()
    throw error
  } finally {
    unwatch()
  }
  // A handler that gave no response at all is Hono's error to report.
  if (!context.finalized) return admission.release()
  if (client.gone()) return release(context, admission)

  const { status } = context.res
  const outcome =
    admission.finishNow === undefined || status >= 500 ? await admission.finish(status) : { headers: admission.finishNow(status) }
  if ('answer' in outcome) {
    const kept = [...context.res.headers].filter(([name]) => keptOnReplacement(name))
    await discard(context.res)
    return answer(context, outcome.answer, new Headers(kept))
  }
  if (client.gone()) return release(context, admission)
  if (Object.keys(outcome.headers).length === 0) return
  settle(context, outcome.headers)
  if (admission.keep !== undefined) await keepAnswer(context.res, admission.keep)
}

/** Reads a copy of a short answer before it leaves. A stream is not kept: its end may be far away. */
async function keepAnswer(response: Response, keep: NonNullable<PaidAdmission['keep']>): Promise<void> {
  if (/^text\/event-stream/i.test(response.headers.get('Content-Type') ?? '') || response.headers.has('Transfer-Encoding')) return
  if (Number(response.headers.get('Content-Length') ?? 0) > MAX_KEPT_BYTES) return
  const copy = response.clone()
  const body = new Uint8Array(await copy.arrayBuffer())
  keep({ status: response.status, headers: keptHeaders(response.headers), body })
}

interface Client {
  gone(): boolean
  /** Returns how to stop listening. */
  onGone(listener: () => void): () => void
}

/**
 * Whether the client is still there. Under Node the adapter's own response says so; the request's signal would too, but
 * asking for it there builds a whole Request, which costs as much as all of a stream payment.
 */
function clientOf(context: Context): Client {
  const outgoing: unknown = typeof context.env === 'object' ? context.env?.outgoing : undefined
  if (isNodeResponse(outgoing)) {
    return {
      // The socket ends first; the response hears of it a little later.
      gone: () => outgoing.destroyed || outgoing.socket?.destroyed === true,
      onGone(listener) {
        outgoing.on('close', listener)
        return () => outgoing.off('close', listener)
      },
    }
  }
  const { signal } = context.req.raw
  return {
    gone: () => signal.aborted,
    onGone(listener) {
      signal.addEventListener('abort', listener)
      return () => signal.removeEventListener('abort', listener)
    },
  }
}

interface NodeResponse {
  readonly destroyed: boolean
  readonly socket: { readonly destroyed: boolean } | null | undefined
  on(event: 'close', listener: () => void): unknown
  off(event: 'close', listener: () => void): unknown
}

function isNodeResponse(value: unknown): value is NodeResponse {
  return typeof value === 'object' && value !== null && 'destroyed' in value && 'socket' in value && 'on' in value && 'off' in value
}

/** Nobody is there to read the answer, and nothing of it has left: the payment is good again. */
async function release(context: Context, admission: PaidAdmission): Promise<void> {
  await admission.release()
  await discard(context.res)
  context.res = undefined
  context.res = new Response(null, { status: 499 })
}

/** Path with query of an absolute URL, to the letter: parsing it again could change what was quoted. */
function targetOf(url: string): string {
  const slash = url.indexOf('/', url.indexOf('://') + 3)
  return slash < 0 ? '/' : url.slice(slash)
}

/** Sets an answer that is not the handler's, over the headers that stay: Hono merges none into it. */
function answer(context: Context, { status, headers, body }: Answer, stay: Headers): void {
  const content = context.req.method === 'HEAD' || body === '' ? null : body
  context.res = undefined
  // Unpaid requests are the many: where nothing is to be merged, a Headers object would cost as much as the quote.
  context.res = new Response(content, { status, headers: isEmpty(stay) ? { ...headers } : merged(context, stay, headers) })
}

function merged(context: Context, stay: Headers, headers: Readonly<Record<string, string>>): Headers {
  const all = new Headers(stay)
  for (const [name, value] of Object.entries(headers)) all.set(name, value)
  addCors(context, all)
  return all
}

function isEmpty(headers: Headers): boolean {
  return headers.keys().next().done === true
}

function settle(context: Context, headers: Record<string, string>): void {
  const { res } = context
  try {
    addTo(context, res.headers, headers)
  } catch {
    // A response that came from fetch has headers that cannot be changed: carry its body over into one of ours.
    const all = new Headers(res.headers)
    addTo(context, all, headers)
    context.res = undefined
    context.res = new Response(res.body, { status: res.status, statusText: res.statusText, headers: all })
  }
}

function addTo(context: Context, all: Headers, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) all.set(name, value)
  all.set('Cache-Control', privateCacheControl(all.get('Cache-Control') ?? undefined))
  addCors(context, all)
}

function addCors(context: Context, all: Headers): void {
  for (const [name, value] of Object.entries(corsHeaders(context.req.method, (said) => all.get(said) ?? undefined))) {
    all.set(name, value)
  }
}

/** Ends a handler's stream that nobody will read. */
async function discard({ body }: Response): Promise<void> {
  // A handler whose stream fails on being cancelled has nobody left to tell.
  if (body !== null && !body.locked) await body.cancel().catch(() => undefined)
}
