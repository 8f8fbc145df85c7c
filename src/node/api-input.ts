import { describe, InputError, quote } from '../codec/index.js'

/** A settlement of 256 streams of a million steps each is 190 kB in base64. */
const MAX_BODY_BYTES = 256 * 1024
/** Nobody who sends more than this waits for an answer. */
const MAX_READ_BYTES = 16 * MAX_BODY_BYTES

/** Long polls last at most this many seconds. */
export const MAX_WAIT_SECONDS = 60

/**
 * The text of a request's body. One that is too large is read all the same, within reason: an answer that overtakes the
 * request breaks the connection under clients that are still sending.
 * @throws InputError naming `body`; its code is `body_too_large` for more than 256 KiB.
 */
export async function readBody(request: Request): Promise<string> {
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of request.body ?? []) {
    length += part.length
    if (length <= MAX_BODY_BYTES) parts.push(part)
    if (length > MAX_READ_BYTES) break
  }
  if (length > MAX_BODY_BYTES) {
    throw new InputError('body', `a body has at most ${MAX_BODY_BYTES} bytes`, { code: 'body_too_large' })
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(parts))
  } catch (cause) {
    throw new InputError('body', 'not UTF-8', { cause })
  }
}

/**
 * The fields of a JSON object that has none but `fields`. Their values are unchecked.
 * @throws InputError naming `body` or the field that is not known.
 */
export function parseBody(text: string, fields: readonly string[]): ReadonlyMap<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new InputError('body', 'not JSON', { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError('body', `expected a JSON object, not ${describe(value)}`)
  }
  const parsed = new Map<string, unknown>(Object.entries(value))
  for (const name of parsed.keys()) {
    if (!fields.includes(name)) throw new InputError(printable(name), 'unknown field')
  }
  return parsed
}

/**
 * The query's parameters, each at most once.
 * @throws InputError naming one that is not known or comes twice.
 */
export function parseQuery<F extends string>(url: string, fields: readonly F[]): Partial<Record<F, string>> {
  const parsed: Partial<Record<F, string>> = {}
  for (const [name, value] of new URL(url).searchParams) {
    const field = fields.find((field) => field === name)
    if (field === undefined) throw new InputError(printable(name), 'unknown query parameter')
    if (parsed[field] !== undefined) throw new InputError(field, 'given twice')
    parsed[field] = value
  }
  return parsed
}

/** Seconds to wait, in milliseconds. Absent is 0. @throws InputError naming `wait`. */
export function parseWait(text: string | undefined): number {
  if (text === undefined) return 0
  if (!/^(0|[1-9][0-9]?)(\.[0-9]{1,3})?$/.test(text) || Number(text) > MAX_WAIT_SECONDS) {
    throw new InputError('wait', `expected seconds from 0 to ${MAX_WAIT_SECONDS}, not ${quote(text)}`)
  }
  return Number(text) * 1000
}

/** Whether certificates are wanted: `0` leaves them out, for whoever has verified that header. @throws InputError. */
export function parseCertificate(text: string | undefined): boolean {
  if (text === undefined || text === '1') return true
  if (text === '0') return false
  throw new InputError('certificate', `expected 0 or 1, not ${quote(text)}`)
}

/** A whole number in decimal, from `least` to `most`. @throws InputError naming `field`. */
export function parseWhole(text: string, field: string, least: number, most: number): number {
  const value = /^(0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : Number.NaN
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw new InputError(field, `expected a whole number from ${least} to ${most}, not ${quote(text)}`)
  }
  return value
}

/** A name from outside, as an error may carry it. */
function printable(name: string): string {
  return quote(name).slice(1, -1)
}
