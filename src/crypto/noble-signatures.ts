import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { slh_dsa_sha2_128f } from '@noble/post-quantum/slh-dsa.js'
import { KeyCache } from './key-cache.js'
import type { SignatureScheme } from './keys.js'

/** One scheme's signing and verification on the calling thread, of inputs whose lengths were already checked. */
export interface SignatureBackend {
  sign(secret: Uint8Array, message: Uint8Array): Uint8Array
  verify(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): boolean
}

interface NobleBackend extends SignatureBackend {
  /** A key pair that everybody knows, for self-tests. */
  fixedKeys(): { secret: Uint8Array; publicKey: Uint8Array }
}

// 2,560 bytes each. Expanding the seed is a quarter of the time of a signature.
const expanded = new KeyCache(64, (seed) => ml_dsa44.keygen(seed).secretKey)

/**
 * `@noble/post-quantum`: FIPS 204 and 205, the pure external interface with an empty context, hedged. It runs
 * everywhere, but it is not independently audited and not constant-time.
 */
export const nobleBackends: Readonly<Record<SignatureScheme, NobleBackend>> = {
  'ml-dsa-44': {
    fixedKeys() {
      const secret = new Uint8Array(32).fill(0x5a)
      return { secret, publicKey: ml_dsa44.keygen(secret).publicKey }
    },
    sign: (secret, message) => ml_dsa44.sign(message, expanded.get(secret)),
    verify: (publicKey, message, signature) => ml_dsa44.verify(signature, message, publicKey),
  },
  'slh-dsa-sha2-128f': {
    fixedKeys() {
      const { secretKey, publicKey } = slh_dsa_sha2_128f.keygen(new Uint8Array(48).fill(0x5a))
      return { secret: secretKey, publicKey }
    },
    sign: (secret, message) => slh_dsa_sha2_128f.sign(message, secret),
    verify: (publicKey, message, signature) => slh_dsa_sha2_128f.verify(signature, message, publicKey),
  },
}
