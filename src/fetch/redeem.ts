import { fromBase64, messageOf } from '../codec/index.js'
import type { NodeClient, Wallet } from '../sdk/index.js'
import { SETTLEMENT_PENDING } from '../x402/facilitator.js'
import { PAYMENT_SIGNATURE } from '../x402/headers.js'
import type { SettleResponse } from '../x402/wire.js'
import type { Attempt, AttemptLog } from './attempts.js'
import type { Call } from './call.js'
import { PaymentError } from './errors.js'
import { followPaid } from './redirect.js'
import { pause, retryAfterMs } from './retry.js'
import { readSettlement } from './settlement.js'
import { shorter } from './ticket.js'

export interface RedeemOptions {
  readonly fetch: typeof globalThis.fetch
  readonly ledger: NodeClient
  readonly wallet: Wallet
  readonly attempts: AttemptLog
  readonly patienceSeconds: number
}

const RETRY_MS = 1_000
/** How often a gateway's own 502, 503 or 504 is taken for a passing trouble. */
const GATEWAY_RETRIES = 2

/**
 * Sends a call with its payment until there is an answer or patience ends. Always the same payment: in the header, or,
 * where a server on the way finds that too long, by reference. Whatever becomes of it, the attempt is no longer held.
 */
export async function redeem(call: Call, attempt: Attempt, options: RedeemOptions): Promise<Response> {
  try {
    return await send(call, attempt, options)
  } finally {
    // Where the answer has cleared it, there is nothing to release.
    await options.attempts.release(call.key, attempt)
  }
}

async function send(call: Call, first: Attempt, options: RedeemOptions): Promise<Response> {
  const { fetch, ledger, wallet, attempts, patienceSeconds } = options
  const giveUpAt = Date.now() + patienceSeconds * 1_000
  let attempt = first
  let gatewayTroubles = 0
  for (;;) {
    let trouble: string
    let waitMs = RETRY_MS
    try {
      if (attempt.submit !== undefined && Date.now() < attempt.submitUntil) await submitOwn(ledger, attempt.submit, call.signal)
      const response = await fetch(call.request({ url: attempt.url, redirect: 'manual', headers: { [PAYMENT_SIGNATURE]: attempt.header } }))
      const settlement = readSettlement(response)
      if (settlement === undefined && (await saysTooLong(response))) {
        const shortened = await shorter(wallet, attempt)
        if (shortened === undefined || !(await passes(call, shortened, fetch))) return response
        await response.body?.cancel()
        await attempts.save(call.key, shortened)
        attempt = shortened
        continue
      }
      const fromGateway = settlement === undefined && [502, 503, 504].includes(response.status)
      if (fromGateway ? ++gatewayTroubles > GATEWAY_RETRIES : !isPending(response, settlement)) {
        return await finish(call, attempt, response, settlement, options)
      }
      trouble = fromGateway ? `the answer was ${response.status}` : 'the server does not know the outcome yet'
      waitMs = retryAfterMs(response) ?? RETRY_MS
      await response.body?.cancel()
    } catch (cause) {
      if (call.signal.aborted || cause instanceof PaymentError) throw cause
      trouble = messageOf(cause)
    }
    if (Date.now() + waitMs > giveUpAt) {
      throw new PaymentError(
        'outcome_unknown',
        `transaction ${attempt.transaction} may have been paid: ${trouble}. Make the same call again: it sends the same payment`,
      )
    }
    await pause(waitMs, call.signal)
  }
}

async function finish(
  call: Call,
  attempt: Attempt,
  response: Response,
  settlement: SettleResponse | undefined,
  { fetch, attempts }: RedeemOptions,
): Promise<Response> {
  if (isAnswered(response, settlement)) await attempts.clear(call.key, attempt)
  return followPaid(call, attempt.url, response, settlement, fetch)
}

/**
 * Whether the payment has been used up or refused for good. A handler that failed leaves it good, and a 401, 404 or 429
 * without a word on the payment may be of a gateway that the payment never passed.
 */
function isAnswered({ status }: Response, settlement: SettleResponse | undefined): boolean {
  if (status >= 500) return false
  return settlement !== undefined || status <= 400 || status === 402
}

function isPending({ status }: Response, settlement: SettleResponse | undefined): boolean {
  return status === 503 && settlement !== undefined && (!settlement.success || settlement.errorReason === SETTLEMENT_PENDING)
}

/** A header that is too long: 431, or 400 as nginx says it. */
async function saysTooLong(response: Response): Promise<boolean> {
  if (response.status === 431 || response.status === 494) return true
  if (response.status !== 400) return false
  const text = await response.clone().text()
  return text.includes('Request Header Or Cookie Too Large') || text.includes('"payment_too_large"')
}

/**
 * Whether a header of this attempt's length comes through, before the payer submits it: nobody pays for what cannot
 * be collected. OPTIONS is never priced and does nothing.
 */
async function passes(call: Call, { url, header }: Attempt, fetch: typeof globalThis.fetch): Promise<boolean> {
  const probe = call.request({ url, method: 'OPTIONS', redirect: 'manual', headers: { 'X-Header-Probe': '0'.repeat(header.length) } })
  const response = await fetch(probe)
  const passed = !(await saysTooLong(response))
  await response.body?.cancel()
  return passed
}

/** Submits a transaction that is paid by reference; sent again it is the same one. */
async function submitOwn(ledger: NodeClient, bytes: string, signal: AbortSignal): Promise<void> {
  const submitted = await ledger.submit(fromBase64(bytes, 'transaction'), { signal })
  signal.throwIfAborted()
  if (submitted.kind === 'refused' && submitted.code !== 'expired') {
    throw new PaymentError('transaction_refused', `the ledger refused the payment: ${submitted.reason}`)
  }
}
