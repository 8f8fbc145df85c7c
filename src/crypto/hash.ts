import { sha256 as nobleSha256 } from '@noble/hashes/sha2.js'
import { nodeCrypto } from './runtime.js'

type Sha256 = (bytes: Uint8Array) => Uint8Array

function pickSha256(): Sha256 {
  const native = nodeCrypto()
  if (native?.hash === undefined) return nobleSha256
  const { hash } = native
  // A Buffer of its own memory would pin a pool slab for each digest: copy into a plain array.
  return (bytes) => new Uint8Array(hash('sha256', bytes, 'buffer'))
}

/** SHA-256 (FIPS 180-4) of `bytes`: 32 fresh bytes. Native where the runtime has it, else `@noble/hashes`. */
export const sha256: Sha256 = pickSha256()

const encoder = new TextEncoder()
const prefixes = new Map<string, Uint8Array>()

function prefixOf(tag: string): Uint8Array {
  let prefix = prefixes.get(tag)
  if (prefix === undefined) {
    const ascii = encoder.encode(tag)
    if (ascii.length === 0 || ascii.length > 255) throw new RangeError(`hash tag of ${ascii.length} bytes`)
    prefix = Uint8Array.of(ascii.length, ...ascii)
    prefixes.set(tag, prefix)
  }
  return prefix
}

/**
 * `H(tag, bytes)` = SHA-256(u8 length of tag ‖ ASCII tag ‖ bytes), docs/protocol.md §1. The parts are concatenated
 * as they are: whoever calls with more than one must use parts whose lengths are fixed or encoded.
 */
export function taggedHash(tag: string, ...parts: readonly Uint8Array[]): Uint8Array {
  const prefix = prefixOf(tag)
  let length = prefix.length
  for (const part of parts) length += part.length
  const message = new Uint8Array(length)
  message.set(prefix)
  let at = prefix.length
  for (const part of parts) {
    message.set(part, at)
    at += part.length
  }
  return sha256(message)
}
