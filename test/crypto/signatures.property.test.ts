import { assert, asyncProperty, integer, nat, oneof, tuple, uint8Array, type Arbitrary } from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keysFromSeed, LENGTHS, publicKeyOf, type SignatureScheme } from '../../src/crypto/keys.js'
import { nobleBackends } from '../../src/crypto/noble-signatures.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'

const keys = keysFromSeed(new Uint8Array(32).fill(1))
const message = new Uint8Array(32).fill(2)

const runs: Record<SignatureScheme, number> = { 'ml-dsa-44': 150, 'slh-dsa-sha2-128f': 25 }

/** Any bytes, and often those of the right length, which get past the first check. */
function bytes(right: number): Arbitrary<Uint8Array> {
  const exact = uint8Array({ minLength: right, maxLength: right })
  const near = uint8Array({ minLength: Math.max(0, right - 2), maxLength: right + 2 })
  const flat = nat(255).map((byte) => new Uint8Array(right).fill(byte))
  return oneof({ weight: 3, arbitrary: exact }, near, flat, uint8Array({ maxLength: 64 }))
}

describe.each(Object.keys(runs) as SignatureScheme[])('%s verification', (scheme) => {
  const { publicKey: keyLength, signature: signatureLength } = LENGTHS[scheme]
  const publicKey = publicKeyOf(scheme, keys.publicKeys)

  it('answers false to any bytes, and never throws', async () => {
    await assert(
      asyncProperty(bytes(keyLength), bytes(32), bytes(signatureLength), async (key, digest, signature) => {
        expect(await inlineSignatures.verify(scheme, key, digest, signature)).toBe(false)
        expect(await inlineSignatures.verify(scheme, publicKey, message, signature)).toBe(false)
      }),
      { numRuns: runs[scheme] },
    )
  })

  it('answers false once any byte of a true signature, or of its key, is another', async () => {
    const signature = await inlineSignatures.sign(scheme, keys, message)
    const change = (length: number) => tuple(nat(length - 1), integer({ min: 1, max: 255 }))
    await assert(
      asyncProperty(change(signatureLength), change(keyLength), async (inSignature, inKey) => {
        const verify = inlineSignatures.verify
        expect(await verify(scheme, publicKey, message, changed(signature, inSignature))).toBe(false)
        expect(await verify(scheme, changed(publicKey, inKey), message, signature)).toBe(false)
      }),
      { numRuns: runs[scheme] },
    )
  })

  it('takes bytes that stand in the middle of other memory', async () => {
    const signature = nobleBackends[scheme].sign(scheme === 'ml-dsa-44' ? keys.mlDsaSecret : keys.slhDsaSecret, message)
    await assert(
      asyncProperty(nat(9), nat(9), async (before, after) => {
        const view = (content: Uint8Array) => {
          const memory = new Uint8Array(before + content.length + after).fill(0xff)
          memory.set(content, before)
          return memory.subarray(before, before + content.length)
        }
        expect(await inlineSignatures.verify(scheme, view(publicKey), view(message), view(signature))).toBe(true)
      }),
      { numRuns: 5 },
    )
  })
})

function changed(content: Uint8Array, [at, by]: [number, number]): Uint8Array {
  const copy = content.slice()
  copy[at]! ^= by
  return copy
}
