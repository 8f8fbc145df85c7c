import { hmac as nobleHmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { nodeCrypto } from './runtime.js'

type Hmac = (key: Uint8Array, message: Uint8Array) => Uint8Array

function pickHmac(): Hmac {
  const native = nodeCrypto()
  if (native?.createHmac === undefined) return (key, message) => nobleHmac(sha256, key, message)
  const { createHmac } = native
  return (key, message) => createHmac('sha256', key).update(message).digest()
}

/** HMAC-SHA256 (RFC 2104): 32 bytes. Native where the runtime has it: every unpaid request costs one. */
export const hmacSha256: Hmac = pickHmac()

/** Whether two byte strings are equal, in time that depends on their length alone. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  let difference = 0
  for (let i = 0; i < a.length; i++) difference |= a[i]! ^ b[i]!
  return difference === 0
}
