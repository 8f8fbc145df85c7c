import { InputError } from '../codec/errors.js'
import { describe } from '../codec/hex.js'

/** 32 bytes of SHA-256: a leaf, a node or a root. Trees share these arrays: whoever gets one must not write to it. */
export type Hash = Uint8Array

export const HASH_LENGTH = 32

/** Whether `value`, from anywhere, is 32 bytes. */
export function isHash(value: unknown): value is Hash {
  return value instanceof Uint8Array && value.length === HASH_LENGTH
}

/** @throws InputError naming `field` unless `value` is 32 bytes. */
export function requireHash(value: Hash, field: string): Hash {
  if (isHash(value)) return value
  const got: unknown = value
  throw new InputError(field, `expected 32 bytes, not ${got instanceof Uint8Array ? `${got.length}` : describe(got)}`)
}

/** Not constant-time: everything in a tree is public. */
export function sameHash(a: Hash, b: Hash): boolean {
  if (a === b) return true
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
