import { createSeller, type SellerOptions } from '../../../src/facilitator/seller.js'
import { decodePaymentRequired, decodeSettlement } from '../../../src/x402/headers.js'
import type { Admission, Answer, PaidAdmission, Route, RouteTerms } from '../../../src/x402/paywall.js'
import type { PaymentRequired, SettleResponse } from '../../../src/x402/wire.js'
import { fakeFacilitator, type FakeFacilitator } from './fake-facilitator.js'
import { CHAIN, PAYEE } from './payments.js'
import { watchedStore, type WatchedStore } from './watched-store.js'

/** A request as the paywall sees it. */
export interface Ask {
  readonly method?: string
  readonly target?: string
  readonly headers?: Readonly<Record<string, string>>
  /** A `PAYMENT-SIGNATURE`. */
  readonly payment?: string
}

/** A seller without a framework, and the fakes behind it. */
export interface Checkout {
  readonly facilitator: FakeFacilitator
  readonly store: WatchedStore
  readonly lines: string[]
  route(terms: string | RouteTerms<unknown>): Route<unknown>
  ask(ask?: Ask): Promise<Admission>
}

export function checkout(options: Partial<SellerOptions> = {}, terms: string | RouteTerms<unknown> = '0.25'): Checkout {
  const facilitator = fakeFacilitator()
  const store = watchedStore()
  const lines: string[] = []
  const log = (line: string): void => void lines.push(line)
  const seller = createSeller(
    { payTo: PAYEE, chain: CHAIN, store, facilitator, logger: { info: log, warn: log, error: log }, ...options },
    () => ({ verify: () => Promise.resolve(false) }),
  )
  const sold = seller.route<unknown>(terms)
  return {
    facilitator,
    store,
    lines,
    route: (other) => seller.route(other),
    ask: (ask) => askFor(sold, ask),
  }
}

export async function askFor(route: Route<unknown>, { method = 'GET', target = '/v1/resource', headers = {}, payment }: Ask = {}): Promise<Admission> {
  const all = new Map(Object.entries({ ...headers, ...(payment === undefined ? {} : { 'PAYMENT-SIGNATURE': payment }) }).map(([name, value]) => [name.toLowerCase(), value]))
  return route.admit({ method, target, header: (name) => all.get(name.toLowerCase()) }, {})
}

export function answerIn(admission: Admission): Answer {
  if (admission.kind !== 'answer') throw new Error(`expected an answer, the request is ${admission.kind}`)
  return admission.answer
}

export function paidIn(admission: Admission): PaidAdmission {
  if (admission.kind !== 'paid') throw new Error(`expected a paid request, not ${JSON.stringify(admission)}`)
  return admission
}

export function quoteIn(answer: Answer): PaymentRequired {
  return decodePaymentRequired(answer.headers['PAYMENT-REQUIRED'] ?? '')
}

export function settlementIn(answer: Answer): SettleResponse {
  return decodeSettlement(answer.headers['PAYMENT-RESPONSE'] ?? '')
}

export function codeIn(answer: Answer): unknown {
  const { extensions } = settlementIn(answer)
  return (extensions?.['sion'] as { code?: unknown } | undefined)?.code
}
