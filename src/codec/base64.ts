import { InputError } from './errors.js'

/** Standard base64 with padding (RFC 4648 §4). */
export function toBase64(bytes: Uint8Array): string {
  if (typeof Buffer !== 'undefined') {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  }
  let binary = ''
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000))
  }
  return btoa(binary)
}

const form = /^[A-Za-z0-9+/_-]*={0,2}$/

/**
 * Bytes of base64: the standard and the URL-safe alphabet, padding optional (RFC 4648 §4, §5). What a lenient decoder
 * skips (spaces, line ends, stray signs, leftover bits) is refused: one text, one value.
 * @throws InputError naming `field`.
 */
export function fromBase64(text: unknown, field: string): Uint8Array {
  if (typeof text !== 'string' || !form.test(text)) throw new InputError(field, 'not base64')
  const bare = text.replace(/=+$/, '').replaceAll('-', '+').replaceAll('_', '/')
  const padded = bare.length % 4 === 0 ? bare : bare + '='.repeat(4 - (bare.length % 4))
  if (bare.length % 4 === 1 || (text.endsWith('=') && text.length !== padded.length)) {
    throw new InputError(field, 'not base64: wrong length')
  }
  const bytes = decode(padded)
  // Leftover bits in the last digit would give one value many spellings.
  if (toBase64(bytes.subarray(bytes.length - (bytes.length % 3 || 3))) !== padded.slice(-4) && padded !== '') {
    throw new InputError(field, 'not base64: leftover bits in the last digit')
  }
  return bytes
}

function decode(padded: string): Uint8Array {
  if (typeof Buffer !== 'undefined') return new Uint8Array(Buffer.from(padded, 'base64'))
  return Uint8Array.from(atob(padded), (char) => char.charCodeAt(0))
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Base64 of the UTF-8 of a text: how x402's headers carry JSON, emoji included. */
export function textToBase64(text: string): string {
  if (typeof Buffer !== 'undefined') return Buffer.from(text, 'utf8').toString('base64')
  return toBase64(encoder.encode(text))
}

/** @throws InputError naming `field`: not base64, or not UTF-8 underneath. */
export function base64ToText(text: unknown, field: string): string {
  const bytes = fromBase64(text, field)
  try {
    return decoder.decode(bytes)
  } catch (cause) {
    throw new InputError(field, 'not UTF-8 under its base64', { cause })
  }
}
