import { LENGTHS, secretOf, SIZES, type DualKeys, type SignatureScheme } from './keys.js'
import { nativeBackend } from './native-signatures.js'
import { nobleBackends } from './noble-signatures.js'
import { SignatureError } from './signature-error.js'

/**
 * What signs and verifies; injected wherever something is signed. The message is always a tagged 32-byte hash, signed
 * as it is: FIPS 204 §5.2 `ML-DSA.Sign` and FIPS 205 §10.2 `slh_sign`, pure, with an empty context.
 *
 * Signatures are hedged, so not unique: the same key and message give other bytes each time, and anybody who has a key
 * can make many for one message. No id, lock or hash may contain signature bytes.
 */
export interface Signatures {
  /**
   * @returns 2,420 bytes (ML-DSA-44) or 17,088 (SLH-DSA-SHA2-128f).
   * @throws SignatureError `malformed_key` or `malformed_message` for a wrong length.
   */
  sign(scheme: SignatureScheme, keys: DualKeys, message: Uint8Array): Promise<Uint8Array>
  /**
   * Whether `signature` is one of `message` under `publicKey`. Wrong lengths are `false`: they come from outside. It
   * rejects only when what verifies is itself broken or closed.
   */
  verify(
    scheme: SignatureScheme,
    publicKey: Uint8Array,
    message: Uint8Array,
    signature: Uint8Array,
  ): Promise<boolean>
}

/**
 * Signatures on the calling thread: native ones where the runtime's pass a self-test at first use (Node 24.8 and
 * later), else `@noble/post-quantum`, about ten times slower. For clients and tools; a server takes
 * `createSignaturePool`, since an SLH-DSA signature would hold up its event loop for 100 to 200 ms.
 *
 * noble is not independently audited and, being JavaScript, not constant-time: who can time a signer closely, or shares
 * a processor with it, may learn about its keys. On Node 24 it derives keys but signs nothing.
 */
export const inlineSignatures: Signatures = {
  async sign(scheme, keys, message) {
    const secret = signingSecret(scheme, keys, message)
    return (nativeBackend(scheme) ?? nobleBackends[scheme]).sign(secret, message)
  },
  async verify(scheme, publicKey, message, signature) {
    if (!wellFormed(scheme, publicKey, message, signature)) return false
    return (nativeBackend(scheme) ?? nobleBackends[scheme]).verify(publicKey, message, signature)
  },
}

/** Whether both schemes run natively here. The first call runs the self-tests. */
export function nativeSignatures(): boolean {
  return nativeBackend('ml-dsa-44') !== undefined && nativeBackend('slh-dsa-sha2-128f') !== undefined
}

/**
 * The secret that signs, once it and the message have the right lengths.
 * @throws SignatureError `malformed_key` or `malformed_message`.
 */
export function signingSecret(scheme: SignatureScheme, keys: DualKeys, message: Uint8Array): Uint8Array {
  const secret = secretOf(scheme, keys)
  const { length } = secret
  if (length !== LENGTHS[scheme].secret) {
    throw new SignatureError('malformed_key', `a ${scheme} secret has ${LENGTHS[scheme].secret} bytes, not ${length}`)
  }
  if (message.length !== SIZES.message) {
    throw new SignatureError(
      'malformed_message',
      `what is signed is a tagged hash of ${SIZES.message} bytes, not ${message.length}`,
    )
  }
  return secret
}

/** Whether all three have the lengths of the scheme. Both implementations throw, each its own way, if they do not. */
export function wellFormed(
  scheme: SignatureScheme,
  publicKey: Uint8Array,
  message: Uint8Array,
  signature: Uint8Array,
): boolean {
  return (
    publicKey.length === LENGTHS[scheme].publicKey &&
    message.length === SIZES.message &&
    signature.length === LENGTHS[scheme].signature
  )
}
