import type { Place, StreamPayment } from '../../sdk/index.js'
import type { SettleResponse } from '../../x402/wire.js'

/**
 * What an answer says of the payment it came for.
 *
 * `taken`: paid. `misplaced`: other steps are due, and the seller says which. `refused`: not taken, for another reason.
 * `failed`: the seller could not serve it and gave the steps back, or took nothing. `silent`: no word on the payment,
 * such as from a gateway, or from a route that costs nothing any more.
 */
export type Verdict =
  | { readonly kind: 'taken' | 'refused' | 'failed' | 'silent' }
  | { readonly kind: 'misplaced'; readonly place: Place }

/** Refusals after which the payer goes where the seller stands. A jump is due where the seller is not as far as it was. */
const MISPLACED = new Set(['wrong_position', 'outside_window', 'already_used', 'jump_due'])
const FROM_GATEWAYS = new Set([502, 503, 504])

export function verdictOf({ status }: Response, settlement: SettleResponse | undefined): Verdict {
  if (settlement?.success === true) return { kind: 'taken' }
  if (settlement !== undefined) {
    const place = status === 402 ? placeIn(settlement) : undefined
    return place === undefined ? { kind: 'refused' } : { kind: 'misplaced', place }
  }
  if (status === 402) return { kind: 'refused' }
  return { kind: status >= 500 && !FROM_GATEWAYS.has(status) ? 'failed' : 'silent' }
}

/** Whether a seller asks for the same payment again: its store or the ledger is out of reach, and nothing was taken. */
export function isBusy({ status, headers }: Response, settlement: SettleResponse | undefined): boolean {
  return status === 503 && (settlement?.success === false || headers.has('retry-after'))
}

/** Whether a payment's steps are among those that the seller calls used. */
export function isUsed({ first, position }: StreamPayment, place: Place): boolean {
  const { floor = place.position, unused = [] } = place
  if (position <= floor) return true
  if (place.floor === undefined) return false
  return !unused.some(([from, to]) => from <= first && position <= to)
}

/** Where the seller stands, as far as it says so in the form it should. */
function placeIn({ extensions }: SettleResponse): Place | undefined {
  const sion = extensions?.['sion']
  if (!isRecord(sion) || typeof sion['code'] !== 'string' || !MISPLACED.has(sion['code'])) return undefined
  const { position, floor, unused } = sion
  if (!isPosition(position)) return undefined
  if (!isPosition(floor) || floor > position || !Array.isArray(unused)) return { position }
  const spans: [number, number][] = []
  for (const span of unused.slice(0, MOST_SPANS)) {
    if (!Array.isArray(span) || !isPosition(span[0]) || !isPosition(span[1]) || span[0] <= floor || span[1] < span[0]) return { position }
    spans.push([span[0], span[1]])
  }
  return { position, floor, unused: spans }
}

/** More pieces than a window has. */
const MOST_SPANS = 4_096

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isPosition(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 2 ** 32 - 1
}
