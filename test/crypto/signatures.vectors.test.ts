import { readFileSync } from 'node:fs'
import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { slh_dsa_sha2_128f } from '@noble/post-quantum/slh-dsa.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fromHex, toHex } from '../../src/codec/index.js'
import { sha256 } from '../../src/crypto/hash.js'
import { LENGTHS, type SignatureScheme } from '../../src/crypto/keys.js'
import { nativeBackend } from '../../src/crypto/native-signatures.js'
import { nobleBackends } from '../../src/crypto/noble-signatures.js'

const bytes = z.string().transform((text) => fromHex(text, 'vector'))
const digest = z.string().length(64)

function group<T extends z.ZodType>(oneCase: T, least: number) {
  return z.object({ source: z.string().min(1), clause: z.string().min(1), cases: z.array(oneCase).min(least) })
}

const mlDsaFile = z.object({
  keyGen: group(z.object({ tcId: z.number(), seed: bytes, publicKeySha256: digest }), 3),
  sign: group(z.object({ tcId: z.number(), comment: z.string(), seed: bytes, message: bytes, signatureSha256: digest }), 6),
})

const slhDsaFile = z.object({
  keyGen: group(z.object({ tcId: z.number(), seed: bytes, publicKey: bytes }), 3),
  sign: group(z.object({ secret: bytes, message: bytes, signatureStart: bytes, signatureEnd: bytes }), 1),
})

// A file that is missing, empty or of another form fails here, before any test is counted.
const mlDsa = mlDsaFile.parse(read('ml-dsa-44.json'))
const slhDsa = slhDsaFile.parse(read('slh-dsa-sha2-128f.json'))

function read(name: string): unknown {
  return JSON.parse(readFileSync(new URL(`../vectors/${name}`, import.meta.url), 'utf8'))
}

/** Everything on this runtime that can verify `scheme`: noble always, and native where there is one. */
function verifiers(scheme: SignatureScheme) {
  const native = nativeBackend(scheme)
  return native === undefined ? [nobleBackends[scheme]] : [nobleBackends[scheme], native]
}

describe(`ML-DSA-44 key generation (${mlDsa.keyGen.clause})`, () => {
  it.each(mlDsa.keyGen.cases)('gives the published public key of test case $tcId', ({ seed, publicKeySha256 }) => {
    expect(toHex(sha256(ml_dsa44.keygen(seed).publicKey))).toBe(publicKeySha256)
  })
})

describe(`ML-DSA-44 signatures (${mlDsa.sign.clause})`, () => {
  it.each(mlDsa.sign.cases)(
    'of test case $tcId ($comment) come out as published and verify, and no other bytes do',
    ({ seed, message, signatureSha256 }) => {
      const { publicKey, secretKey } = ml_dsa44.keygen(seed)
      const signature = ml_dsa44.sign(message, secretKey, { extraEntropy: false })
      expect(toHex(sha256(signature))).toBe(signatureSha256)
      for (const { verify } of verifiers('ml-dsa-44')) {
        expect(verify(publicKey, message, signature)).toBe(true)
        // c̃, z, and the hints: FIPS 204 algorithm 26, sigEncode.
        for (const at of [0, 31, 32, 2335, 2336, 2419]) expect(verify(publicKey, message, flipped(signature, at))).toBe(false)
        for (const at of [0, 32, 1311]) expect(verify(flipped(publicKey, at), message, signature)).toBe(false)
        expect(verify(publicKey, flipped(message, 0), signature)).toBe(false)
      }
    },
  )

  it('are refused when the hints are encoded in a second way (FIPS 204 algorithm 21, HintBitUnpack)', () => {
    const { seed, message } = mlDsa.sign.cases[0]!
    const { publicKey, secretKey } = ml_dsa44.keygen(seed)
    const signature = ml_dsa44.sign(message, secretKey, { extraEntropy: false })
    const hints = 32 + 4 * 576
    const used = signature[hints + 83]!
    expect(signature[hints + 80]).toBeGreaterThan(1)
    expect(used).toBeLessThan(80)
    for (const { verify } of verifiers('ml-dsa-44')) {
      const swapped = signature.slice()
      swapped.set([signature[hints + 1]!, signature[hints]!], hints)
      const repeated = signature.slice()
      repeated[hints + 1] = signature[hints]!
      const padded = signature.slice()
      padded[hints + used] = 1
      const tooMany = signature.slice()
      tooMany[hints + 83] = 81
      const backwards = signature.slice()
      backwards[hints + 81] = signature[hints + 80]! - 1
      for (const other of [swapped, repeated, padded, tooMany, backwards]) {
        expect(verify(publicKey, message, other)).toBe(false)
      }
    }
  })
})

describe(`SLH-DSA-SHA2-128f key generation (${slhDsa.keyGen.clause})`, () => {
  it.each(slhDsa.keyGen.cases)('gives the published public key of test case $tcId', ({ seed, publicKey }) => {
    expect(toHex(slh_dsa_sha2_128f.keygen(seed).publicKey)).toBe(toHex(publicKey))
  })
})

describe(`SLH-DSA-SHA2-128f signatures (${slhDsa.sign.clause})`, () => {
  it.each(slhDsa.sign.cases)(
    'come out as published and verify, and no other bytes do',
    ({ secret, message, signatureStart, signatureEnd }) => {
      const signature = slh_dsa_sha2_128f.sign(message, secret, { extraEntropy: false })
      expect(signature.length).toBe(LENGTHS['slh-dsa-sha2-128f'].signature)
      expect(toHex(signature.slice(0, 64))).toBe(toHex(signatureStart))
      expect(toHex(signature.slice(-64))).toBe(toHex(signatureEnd))
      const publicKey = secret.slice(32)
      for (const { verify } of verifiers('slh-dsa-sha2-128f')) {
        expect(verify(publicKey, message, signature)).toBe(true)
        // R, the FORS part, the first and the last layer of the hypertree: FIPS 205 figures 13 and 17.
        for (const at of [0, 16, 3711, 3712, 17087]) {
          expect(verify(publicKey, message, flipped(signature, at))).toBe(false)
        }
        for (const at of [0, 16]) expect(verify(flipped(publicKey, at), message, signature)).toBe(false)
        expect(verify(publicKey, flipped(message, 0), signature)).toBe(false)
      }
    },
  )
})

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice()
  copy[at]! ^= 1
  return copy
}
