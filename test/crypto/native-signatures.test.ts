import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { NodeCrypto } from '../../src/crypto/runtime.js'

/** A runtime whose `node:crypto` has ML-DSA-44, done by noble, so that one thing at a time can be wrong with it. */
function runtime(faults: Partial<NodeCrypto> = {}): NodeCrypto {
  const raw = ({ key }: { key: Uint8Array }): Uint8Array => key.slice(22)
  const bytes = (key: unknown): Uint8Array => {
    if (key instanceof Uint8Array) return key
    throw new TypeError('not a key of this runtime')
  }
  return {
    createPrivateKey: raw,
    createPublicKey: raw,
    sign: (_algorithm: null, message: Uint8Array, key: unknown) =>
      ml_dsa44.sign(message, ml_dsa44.keygen(bytes(key)).secretKey),
    verify: (_algorithm: null, message: Uint8Array, key: unknown, signature: Uint8Array) =>
      ml_dsa44.verify(signature, message, bytes(key)),
    ...faults,
  }
}

/** Whether a process that starts in such a runtime takes its signatures. */
async function taken(crypto: NodeCrypto | undefined): Promise<boolean> {
  vi.resetModules()
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue(crypto)
  const { nativeBackend } = await import('../../src/crypto/native-signatures.js')
  return nativeBackend('ml-dsa-44') !== undefined
}

afterEach(() => {
  vi.restoreAllMocks()
  vi.resetModules()
})

describe('the self-test of native signatures', () => {
  it('takes a runtime that agrees with noble', async () => {
    expect(await taken(runtime())).toBe(true)
  })

  it('does without on a runtime that has no node:crypto', async () => {
    expect(await taken(undefined)).toBe(false)
  })

  it.each<[string, Partial<NodeCrypto>]>([
    ['cannot import keys', { createPublicKey: refuse }],
    ['cannot import secret keys', { createPrivateKey: refuse }],
    ['cannot sign', { sign: refuse }],
    ['signs garbage', { sign: () => new Uint8Array(2420) }],
    ['signs under another context', { sign: signUnder(new Uint8Array([1])) }],
    ['signs with another key', { createPrivateKey: () => new Uint8Array(32) }],
    ['verifies nothing', { verify: () => false }],
    ['verifies everything', { verify: () => true }],
  ])('does without a runtime that %s', async (_, faults) => {
    expect(await taken(runtime(faults))).toBe(false)
  })
})

function refuse(): never {
  throw new Error('error:1E08010C:DECODER routines::unsupported')
}

function signUnder(context: Uint8Array) {
  return (_algorithm: null, message: Uint8Array, key: unknown): Uint8Array => {
    if (!(key instanceof Uint8Array)) throw new TypeError('not a key of this runtime')
    return ml_dsa44.sign(message, ml_dsa44.keygen(key).secretKey, { context })
  }
}
