import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { slh_dsa_sha2_128f } from '@noble/post-quantum/slh-dsa.js'
import { taggedHash } from './hash.js'
import { SignatureError } from './signature-error.js'

/** FIPS 204 (lattice: fast, 2,420 bytes) and FIPS 205 (hashes only: slow, 17,088 bytes). */
export type SignatureScheme = 'ml-dsa-44' | 'slh-dsa-sha2-128f'

/** Bytes of everything that is stored or sent: FIPS 204 table 2, FIPS 205 table 2. */
export const SIZES = {
  mlDsaPublic: 1312,
  mlDsaSecret: 32,
  mlDsaSignature: 2420,
  slhDsaPublic: 32,
  slhDsaSecret: 64,
  slhDsaSignature: 17088,
  seed: 32,
  message: 32,
} as const

/** The same by scheme. */
export const LENGTHS: Readonly<Record<SignatureScheme, { secret: number; publicKey: number; signature: number }>> = {
  'ml-dsa-44': { secret: SIZES.mlDsaSecret, publicKey: SIZES.mlDsaPublic, signature: SIZES.mlDsaSignature },
  'slh-dsa-sha2-128f': { secret: SIZES.slhDsaSecret, publicKey: SIZES.slhDsaPublic, signature: SIZES.slhDsaSignature },
}

export interface DualPublicKeys {
  /** 1,312 bytes, FIPS 204 `pkEncode`. */
  readonly mlDsa: Uint8Array
  /** 32 bytes, PK.seed ‖ PK.root. */
  readonly slhDsa: Uint8Array
}

/** Both key pairs of one wallet or validator. The secrets are plain memory: nothing here locks or wipes it. */
export interface DualKeys {
  readonly publicKeys: DualPublicKeys
  /**
   * The 32-byte seed ξ of FIPS 204 `ML-DSA.KeyGen_internal`, not the expanded key: it is what native crypto imports,
   * and the only form that cannot be inconsistent. What signs keeps the expanded form of keys in use.
   */
  readonly mlDsaSecret: Uint8Array
  /** 64 bytes: SK.seed ‖ SK.prf ‖ PK.seed ‖ PK.root (FIPS 205 §9.1). */
  readonly slhDsaSecret: Uint8Array
}

/**
 * Both key pairs of a 32-byte wallet seed, by tagged hashes (docs/protocol.md §2):
 *
 *     ξ                 = H("sion/ml-dsa-seed/v1", seed)
 *     SK.seed ‖ SK.prf  = H("sion/slh-dsa-seed/v1", seed)
 *     PK.seed           = first 16 bytes of H("sion/slh-dsa-public-seed/v1", seed)
 *
 * Deterministic and synchronous; about 7 ms, most of it the SLH-DSA root, so keep the result. Derived by
 * `@noble/post-quantum` on every runtime, which is not independently audited and, being JavaScript, not constant-time.
 *
 * @throws SignatureError `malformed_key` if the seed is not 32 bytes.
 */
export function keysFromSeed(seed: Uint8Array): DualKeys {
  if (seed.length !== SIZES.seed) {
    throw new SignatureError('malformed_key', `a wallet seed has ${SIZES.seed} bytes, not ${seed.length}`)
  }
  const mlDsaSecret = taggedHash('sion/ml-dsa-seed/v1', seed)
  const mlDsa = ml_dsa44.keygen(mlDsaSecret).publicKey
  const slhDsaSeed = new Uint8Array(48)
  slhDsaSeed.set(taggedHash('sion/slh-dsa-seed/v1', seed))
  slhDsaSeed.set(taggedHash('sion/slh-dsa-public-seed/v1', seed).subarray(0, 16), 32)
  const slhDsa = slh_dsa_sha2_128f.keygen(slhDsaSeed)
  return { publicKeys: { mlDsa, slhDsa: slhDsa.publicKey }, mlDsaSecret, slhDsaSecret: slhDsa.secretKey }
}

export function publicKeyOf(scheme: SignatureScheme, keys: DualPublicKeys): Uint8Array {
  return scheme === 'ml-dsa-44' ? keys.mlDsa : keys.slhDsa
}

export function secretOf(scheme: SignatureScheme, keys: DualKeys): Uint8Array {
  return scheme === 'ml-dsa-44' ? keys.mlDsaSecret : keys.slhDsaSecret
}
