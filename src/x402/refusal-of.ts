import { isCode, refuse, type Code, type Refusal } from './codes.js'
import { SETTLEMENT_PENDING } from './facilitator.js'

/**
 * A facilitator's no, as a refusal of this seller's: its sentence, its stable code where it has one of ours, and what it
 * told about the place that a payer should go back to.
 */
export function refusalOf(
  reason: string | undefined,
  extensions: Record<string, unknown> | undefined,
  payer?: string,
  transaction?: string,
): Refusal {
  const { code, ...details } = sionOf(extensions)
  const more = {
    ...(payer === undefined ? {} : { payer }),
    ...(transaction === undefined || transaction === '' ? {} : { transaction }),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  }
  if (reason === SETTLEMENT_PENDING) return refuse('settlement_pending', SETTLEMENT_PENDING, more)
  return refuse(known(code) ?? 'transaction_refused', reason ?? 'the facilitator gave no reason', more)
}

function known(code: unknown): Code | undefined {
  return isCode(code) ? code : undefined
}

function sionOf(extensions: Record<string, unknown> | undefined): Record<string, unknown> {
  const sion = extensions?.['sion']
  return typeof sion === 'object' && sion !== null ? { ...sion } : {}
}
