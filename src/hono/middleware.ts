import type { Context, MiddlewareHandler } from 'hono'
import { createSeller, type SellerOptions, type Verifier } from '../facilitator/seller.js'
import { exposedHeaders, privateCacheControl, type Answer, type Route, type RouteTerms } from '../x402/paywall.js'
import type { Price } from '../x402/price.js'
import type { Charge } from './types.js'

/** The seller's middleware, over the signatures that the entry point chose for its runtime. */
export function sellWith(options: SellerOptions, signatures: () => Verifier): Charge {
  const seller = createSeller(options, signatures)
  const charge = (terms: Price | RouteTerms<Context>): MiddlewareHandler => {
    const route = seller.route<Context>(typeof terms === 'string' ? { price: terms } : terms)
    return (context, next) => handle(route, context, next)
  }
  return Object.assign(charge, { ready: () => seller.ready(), close: () => seller.close() })
}

async function handle(route: Route<Context>, context: Context, next: () => Promise<void>): Promise<Response | undefined> {
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
      await next()
      return undefined
    case 'answer':
      return answered(context, admission.answer)
    case 'paid':
  }

  try {
    await next()
  } catch (error) {
    await admission.release()
    throw error
  }
  if (context.req.raw.signal.aborted) {
    await admission.release()
    return undefined
  }
  const outcome = await admission.finish(context.res.status)
  if ('answer' in outcome) {
    await context.res.body?.cancel()
    context.res = undefined
    return answered(context, outcome.answer)
  }
  if (Object.keys(outcome.headers).length > 0) settle(context, outcome.headers)
  return undefined
}

/** Path with query of an absolute URL, to the letter: parsing it again could change what was quoted. */
function targetOf(url: string): string {
  const slash = url.indexOf('/', url.indexOf('://') + 3)
  return slash < 0 ? '/' : url.slice(slash)
}

function answered(context: Context, { status, headers, body }: Answer): Response {
  const corsed = context.res.headers
  const exposed = corsed.has('Access-Control-Allow-Origin')
    ? { 'Access-Control-Expose-Headers': exposedHeaders(corsed.get('Access-Control-Expose-Headers') ?? undefined) }
    : {}
  return new Response(context.req.method === 'HEAD' ? null : body, { status, headers: { ...headers, ...exposed } })
}

function settle(context: Context, headers: Record<string, string>): void {
  const { res } = context
  // A response that came from fetch has headers that cannot be changed: carry its body over into one of ours.
  const all = new Headers(res.headers)
  for (const [name, value] of Object.entries(headers)) all.set(name, value)
  all.set('Cache-Control', privateCacheControl(all.get('Cache-Control') ?? undefined))
  if (all.has('Access-Control-Allow-Origin')) {
    all.set('Access-Control-Expose-Headers', exposedHeaders(all.get('Access-Control-Expose-Headers') ?? undefined))
  }
  context.res = undefined
  context.res = new Response(res.body, { status: res.status, statusText: res.statusText, headers: all })
}
