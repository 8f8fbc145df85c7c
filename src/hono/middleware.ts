import type { Context, MiddlewareHandler } from 'hono'
import { createSeller, type SellerOptions, type Verifier } from '../facilitator/seller.js'
import { corsHeaders, keptOnReplacement, privateCacheControl } from '../x402/answer-headers.js'
import type { Answer, PaidAdmission, Route, RouteTerms } from '../x402/paywall.js'
import type { Price } from '../x402/price.js'
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

async function handle(route: Route<Context>, context: Context, next: () => Promise<void>): Promise<void> {
  const admission = await route.admit(
    {
      method: context.req.method,
      target: targetOf(context.req.url),
      header: (name) => context.req.header(name),
    },
    context,
  )
  switch (admission.kind) {
    case 'free':
      return next()
    case 'answer':
      return answer(context, admission.answer, new Headers(context.res.headers))
    case 'paid':
      return sell(context, admission, next)
  }
}

/** Lets the handler answer and holds its response back until the payment has bought it. */
async function sell(context: Context, admission: PaidAdmission, next: () => Promise<void>): Promise<void> {
  const { signal } = context.req.raw
  const left = (): void => void admission.release()
  if (signal.aborted) return release(context, admission)
  signal.addEventListener('abort', left)
  try {
    await next()
  } catch (error) {
    await admission.release()
    throw error
  } finally {
    signal.removeEventListener('abort', left)
  }
  // A handler that gave no response at all is Hono's error to report.
  if (!context.finalized) return admission.release()
  if (signal.aborted) return release(context, admission)

  const outcome = await admission.finish(context.res.status)
  if ('answer' in outcome) {
    const kept = [...context.res.headers].filter(([name]) => keptOnReplacement(name))
    await discard(context.res)
    return answer(context, outcome.answer, new Headers(kept))
  }
  if (signal.aborted) return release(context, admission)
  if (Object.keys(outcome.headers).length > 0) settle(context, outcome.headers)
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
function answer(context: Context, { status, headers, body }: Answer, all: Headers): void {
  for (const [name, value] of Object.entries(headers)) all.set(name, value)
  addCors(context, all)
  context.res = undefined
  context.res = new Response(context.req.method === 'HEAD' || body === '' ? null : body, { status, headers: all })
}

function settle(context: Context, headers: Record<string, string>): void {
  const { res } = context
  // A response that came from fetch has headers that cannot be changed: carry its body over into one of ours.
  const all = new Headers(res.headers)
  for (const [name, value] of Object.entries(headers)) all.set(name, value)
  all.set('Cache-Control', privateCacheControl(all.get('Cache-Control') ?? undefined))
  addCors(context, all)
  context.res = undefined
  context.res = new Response(res.body, { status: res.status, statusText: res.statusText, headers: all })
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
