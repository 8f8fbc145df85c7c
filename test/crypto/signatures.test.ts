import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { slh_dsa_sha2_128f } from '@noble/post-quantum/slh-dsa.js'
import { describe, expect, it } from 'vitest'
import { toHex } from '../../src/codec/index.js'
import { keysFromSeed, LENGTHS, publicKeyOf, secretOf, type DualKeys, type SignatureScheme } from '../../src/crypto/keys.js'
import { nativeBackend } from '../../src/crypto/native-signatures.js'
import { nobleBackends } from '../../src/crypto/noble-signatures.js'
import { nodeCrypto } from '../../src/crypto/runtime.js'
import { inlineSignatures, nativeSignatures } from '../../src/crypto/signatures.js'

const schemes: readonly SignatureScheme[] = ['ml-dsa-44', 'slh-dsa-sha2-128f']
const keys = keysFromSeed(new Uint8Array(32).fill(7))
const others = keysFromSeed(new Uint8Array(32).fill(8))
const message = new Uint8Array(32).fill(9)

describe.each(schemes)('inline %s signatures', (scheme) => {
  const { sign, verify } = inlineSignatures
  const publicKey = publicKeyOf(scheme, keys.publicKeys)
  const signed = sign(scheme, keys, message)

  it('verify under their key, for their message', async () => {
    const signature = await signed
    expect(signature).toHaveLength(LENGTHS[scheme].signature)
    expect(Object.getPrototypeOf(signature)).toBe(Uint8Array.prototype)
    expect(await verify(scheme, publicKey, message, signature)).toBe(true)
  })

  it('do not verify for another message, key or scheme', async () => {
    const signature = await signed
    const another = message.slice()
    another[0]! ^= 1
    expect(await verify(scheme, publicKey, another, signature)).toBe(false)
    expect(await verify(scheme, publicKeyOf(scheme, others.publicKeys), message, signature)).toBe(false)
    const otherScheme = schemes.find((name) => name !== scheme)!
    expect(await verify(otherScheme, publicKeyOf(otherScheme, keys.publicKeys), message, signature)).toBe(false)
  })

  it('are not unique: the same key and message give other bytes each time', async () => {
    expect(toHex(await sign(scheme, keys, message))).not.toBe(toHex(await signed))
  })

  it('use the empty context: what was signed under another one is refused', async () => {
    const noble = scheme === 'ml-dsa-44' ? ml_dsa44 : slh_dsa_sha2_128f
    const secret = scheme === 'ml-dsa-44' ? ml_dsa44.keygen(keys.mlDsaSecret).secretKey : keys.slhDsaSecret
    const context = (bytes: Uint8Array) => noble.sign(message, secret, { context: bytes })
    expect(await verify(scheme, publicKey, message, context(new Uint8Array()))).toBe(true)
    expect(await verify(scheme, publicKey, message, context(new Uint8Array([0])))).toBe(false)
  })

  it('are false, not errors, when a key, message or signature is of another length', async () => {
    const signature = await signed
    for (const length of [0, 1, 31, 33, 1311, 1313, 2419, 2421, 17087, 17089]) {
      const wrong = new Uint8Array(length)
      expect(await verify(scheme, wrong, message, signature)).toBe(false)
      expect(await verify(scheme, publicKey, message, wrong)).toBe(false)
      expect(await verify(scheme, publicKey, wrong, signature)).toBe(false)
    }
  })

  it('are not made with a secret or of a message of another length, and the error shows no byte of either', async () => {
    const field = scheme === 'ml-dsa-44' ? 'mlDsaSecret' : 'slhDsaSecret'
    for (const length of [0, 31, 33, 63, 65, 2560]) {
      const malformed: DualKeys = { ...keys, [field]: new Uint8Array(length).fill(0xab) }
      await expect(sign(scheme, malformed, message)).rejects.toMatchObject({
        code: 'malformed_key',
        message: `a ${scheme} secret has ${LENGTHS[scheme].secret} bytes, not ${length}`,
      })
    }
    await expect(sign(scheme, keys, new Uint8Array(31))).rejects.toMatchObject({ code: 'malformed_message' })
    await expect(sign(scheme, keys, new Uint8Array(64))).rejects.toMatchObject({ code: 'malformed_message' })
  })
})

describe('native signatures', () => {
  const present = importsMlDsa()

  it('are found out about once, and exist only where the runtime imports such keys', () => {
    expect(nativeBackend('ml-dsa-44')).toBe(nativeBackend('ml-dsa-44'))
    if (!present) expect(nativeSignatures()).toBe(false)
    expect(nativeSignatures()).toBe(schemes.every((scheme) => nativeBackend(scheme) !== undefined))
  })

  it.skipIf(!nativeSignatures()).each(schemes)('and noble ones of %s verify each other', async (scheme) => {
    const native = nativeBackend(scheme)!
    const noble = nobleBackends[scheme]
    const publicKey = publicKeyOf(scheme, keys.publicKeys)
    const secret = secretOf(scheme, keys)
    const fromNative = [native.sign(secret, message), await native.signInBackground(secret, message)]
    for (const signature of [...fromNative, noble.sign(secret, message)]) {
      expect(noble.verify(publicKey, message, signature)).toBe(true)
      expect(native.verify(publicKey, message, signature)).toBe(true)
      expect(await native.verifyInBackground(publicKey, message, signature)).toBe(true)
      expect(await native.verifyInBackground(publicKey, new Uint8Array(32), signature)).toBe(false)
    }
  })
})

function importsMlDsa(): boolean {
  try {
    const prefix = Buffer.from('30820532300b06096086480165030403110382052100', 'hex')
    nodeCrypto()?.createPublicKey({ key: Buffer.concat([prefix, keys.publicKeys.mlDsa]), format: 'der', type: 'spki' })
    return true
  } catch {
    return false
  }
}
