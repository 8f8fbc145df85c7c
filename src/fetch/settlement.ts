import { decodeSettlement, PAYMENT_RESPONSE } from '../x402/headers.js'
import type { SettleResponse } from '../x402/wire.js'

const settlements = new WeakMap<Response, SettleResponse>()

/**
 * What the server said of the payment for this response: undefined where nothing was paid, or it said nothing that can
 * be read. It is the server's word; a light client can check the transaction it names.
 */
export function settlementOf(response: Response): SettleResponse | undefined {
  return settlements.get(response) ?? readSettlement(response)
}

export function readSettlement(response: Response): SettleResponse | undefined {
  const header = response.headers.get(PAYMENT_RESPONSE)
  if (header === null) return undefined
  try {
    return decodeSettlement(header)
  } catch {
    return undefined
  }
}

/** Carries a settlement over to the response that a redirect led to. */
export function attachSettlement(response: Response, settlement: SettleResponse | undefined): Response {
  if (settlement !== undefined) settlements.set(response, settlement)
  return response
}
