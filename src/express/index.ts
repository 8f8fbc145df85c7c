import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { createSignaturePool } from '../crypto/signature-pool.js'
import { createSeller, type SellerOptions } from '../facilitator/seller.js'
import type { Price } from '../x402/price.js'
import type { Route, RouteTerms } from '../x402/paywall.js'
import { gate, sendAgain, sendAnswer } from './gate.js'

export type { SellerOptions } from '../facilitator/seller.js'
export type { Price } from '../x402/price.js'
export type { RouteTerms } from '../x402/paywall.js'

/** Makes a route paid: `app.get('/report', charge('0.25'), handler)`. */
export interface Charge {
  /**
   * @throws InputError at once for a fixed price that is none.
   */
  (terms: Price | RouteTerms<Request>): RequestHandler
  /** Resolves once payments can be taken; throws why they can't. Until then priced routes answer 503. */
  ready(): Promise<void>
  /** Ends what the seller keeps open. Call it after the HTTP server has closed. */
  close(): Promise<void>
}

/**
 * The seller's middleware for Express 5. Put it on a route after the app's own validation, or before a whole router;
 * the route is the framework's own match, so a request cannot dodge it by spelling its path differently.
 *
 * An answer below 500 has been bought when its head leaves; from 500 on, or when the handler throws or the client goes
 * away first, the same payment is good again.
 */
export function paywall(options: SellerOptions): Charge {
  const seller = createSeller(options, createSignaturePool)
  const charge = (terms: Price | RouteTerms<Request>): RequestHandler => {
    const route = seller.route<Request>(terms)
    return (request, response, next) => handle(route, request, response, next)
  }
  return Object.assign(charge, { ready: () => seller.ready(), close: () => seller.close() })
}

async function handle(route: Route<Request>, request: Request, response: Response, next: NextFunction): Promise<void> {
  const admission = await route.admit(
    {
      method: request.method,
      target: request.originalUrl,
      header: (name) => request.get(name),
    },
    request,
  )
  // The client left, or the app answered meanwhile (a time limit, say): there is nobody to sell to.
  const over = response.destroyed || request.socket.destroyed || response.headersSent
  switch (admission.kind) {
    case 'free':
      next()
      return
    case 'answer':
      if (!over) sendAnswer(response, admission.answer)
      return
    case 'again':
      if (!over) sendAgain(response, admission.answer)
      return
    case 'paid':
      if (over) {
        await admission.release()
        return
      }
      gate(response, admission)
      next()
  }
}
