import type { SettleResponse } from '../x402/wire.js'
import type { Call } from './call.js'
import { PaymentError } from './errors.js'
import { attachSettlement } from './settlement.js'

/** @throws PaymentError `redirected`. A call that was redirected pays only where the caller has business, and where it is the same call. */
export function checkRedirect(call: Call, url: string): void {
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

/** The answer to a paid call, or what it leads to: the redirect was bought; where it leads, the payment does not go. */
export async function followPaid(
  call: Call,
  from: string,
  response: Response,
  settlement: SettleResponse | undefined,
  fetch: typeof globalThis.fetch,
): Promise<Response> {
  const location = response.headers.get('location')
  if (response.status < 300 || response.status >= 400 || location === null || call.redirect !== 'follow') return response
  await response.body?.cancel()
  const url = new URL(location, from).href
  return attachSettlement(await fetch(call.request({ url, method: methodAfter(response.status, call.method) })), settlement)
}

/** The method with which a redirect is followed (Fetch standard, "HTTP-redirect fetch"). */
function methodAfter(status: number, method: string): string {
  if (status === 303) return method === 'HEAD' ? 'HEAD' : 'GET'
  return (status === 301 || status === 302) && method === 'POST' ? 'GET' : method
}
