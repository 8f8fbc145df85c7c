import { InputError } from './errors.js'
import { escaped } from './printable.js'

const digits = '0123456789abcdef'
const pairs = Array.from({ length: 256 }, (_, byte) => digits[byte >> 4]! + digits[byte & 15]!)

/** Lower-case hex. */
export function toHex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += pairs[byte]
  return text
}

function nibble(code: number): number {
  if (code >= 48 && code <= 57) return code - 48
  if (code >= 97 && code <= 102) return code - 87
  return -1
}

/**
 * Bytes of a hex text. Lower case only, so that a value has exactly one spelling.
 * @throws InputError naming `field`: not a string, odd length, another character, or not `length` bytes.
 */
export function fromHex(text: unknown, field: string, length?: number): Uint8Array {
  if (typeof text !== 'string') throw new InputError(field, `expected hex text, not ${describe(text)}`)
  if (length !== undefined && text.length !== length * 2) {
    throw new InputError(field, `expected ${length * 2} hex digits, not ${text.length}`)
  }
  if (text.length % 2 !== 0) throw new InputError(field, `hex of odd length ${text.length}`)
  const bytes = new Uint8Array(text.length / 2)
  for (let i = 0; i < bytes.length; i++) {
    const high = nibble(text.charCodeAt(2 * i))
    const low = nibble(text.charCodeAt(2 * i + 1))
    if (high < 0 || low < 0) throw new InputError(field, 'expected lower-case hex digits only')
    bytes[i] = (high << 4) | low
  }
  return bytes
}

/** An id or digest as it is kept in memory and JSON: 64 lower-case hex digits. */
export type Id = string

const idForm = /^[0-9a-f]{64}$/

export function isId(value: unknown): value is Id {
  return typeof value === 'string' && idForm.test(value)
}

/** @throws InputError unless `value` is 64 lower-case hex digits. */
export function parseId(value: unknown, field: string): Id {
  if (isId(value)) return value
  throw new InputError(
    field,
    typeof value === 'string'
      ? `expected an id of 64 lower-case hex digits, not ${quote(value)}`
      : `expected an id of 64 lower-case hex digits, not ${describe(value)}`,
  )
}

/** The first eight digits of an id: how sentences name it. */
export function shortId(id: Id): string {
  return id.slice(0, 8)
}

/** A value from outside as an error may show it: quoted, printable, cut. */
export function quote(text: string, most = 40): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text
  return escaped(JSON.stringify(cut))
}

/** The kind of a value from outside, for an error. */
export function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (value === undefined) return 'nothing'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}
