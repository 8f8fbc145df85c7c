import { KeyCache } from './key-cache.js'
import { LENGTHS, type SignatureScheme } from './keys.js'
import { nobleBackends, type SignatureBackend } from './noble-signatures.js'
import { nodeCrypto, type NodeCrypto } from './runtime.js'
import { SignatureError } from './signature-error.js'

/** `node:crypto`, which can also work in the runtime's own thread pool. */
export interface NativeBackend extends SignatureBackend {
  signInBackground(secret: Uint8Array, message: Uint8Array): Promise<Uint8Array>
  verifyInBackground(publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array): Promise<boolean>
}

const tested = new Map<SignatureScheme, NativeBackend | undefined>()

/**
 * Native signatures for `scheme`, if this runtime has them and they pass the self-test; decided once, at first use.
 *
 * Not by version: Node 24.7 has the algorithms but cannot sign SLH-DSA, and a Node may be built with another OpenSSL.
 * The test signs natively and has noble verify that under the key that noble derived, then verifies it natively, and
 * natively refuses another message. So both key imports, the empty context, signing and verification agree with noble,
 * and noble never has to sign SLH-DSA, which would cost more than all the rest. A Node without the algorithms fails at
 * the first key import and pays nothing; Node 24 pays about 25 ms for ML-DSA and 50 ms for SLH-DSA, once,
 * most of it noble warming up.
 */
export function nativeBackend(scheme: SignatureScheme): NativeBackend | undefined {
  if (!tested.has(scheme)) tested.set(scheme, selfTested(scheme))
  return tested.get(scheme)
}

function selfTested(scheme: SignatureScheme): NativeBackend | undefined {
  const crypto = nodeCrypto()
  if (crypto === undefined) return undefined
  const message = new Uint8Array(32).fill(0xa5)
  try {
    importPublic(crypto, scheme, new Uint8Array(LENGTHS[scheme].publicKey))
    const backend = backendOf(crypto, scheme)
    const noble = nobleBackends[scheme]
    const { secret, publicKey } = noble.fixedKeys()
    const signature = backend.sign(secret, message)
    const agree =
      noble.verify(publicKey, message, signature) &&
      backend.verify(publicKey, message, signature) &&
      !backend.verify(publicKey, new Uint8Array(32), signature)
    return agree ? backend : undefined
  } catch {
    // Whatever the runtime says here means one thing: not to be used.
    return undefined
  }
}

function backendOf(crypto: NodeCrypto, scheme: SignatureScheme): NativeBackend {
  // An imported ML-DSA key carries its expanded matrix, some 20 KiB.
  const secrets = new KeyCache(64, (secret) => importSecret(crypto, scheme, secret))
  const publicKeys = new KeyCache(512, (publicKey) => importPublic(crypto, scheme, publicKey))
  return {
    // The algorithm is null, never a digest: a digest name would ask for the pre-hash variants.
    sign: (secret, message) => plain(crypto.sign(null, message, secrets.get(secret))),
    verify: (publicKey, message, signature) => crypto.verify(null, message, publicKeys.get(publicKey), signature),
    signInBackground: (secret, message) =>
      new Promise((resolve, reject) => {
        crypto.sign(null, message, secrets.get(secret), (error, signature) => {
          if (error) reject(failed(scheme, 'sign', error))
          else resolve(plain(signature))
        })
      }),
    verifyInBackground: (publicKey, message, signature) =>
      new Promise((resolve, reject) => {
        crypto.verify(null, message, publicKeys.get(publicKey), signature, (error, valid) => {
          if (error) reject(failed(scheme, 'verify', error))
          else resolve(valid)
        })
      }),
  }
}

function failed(scheme: SignatureScheme, operation: string, cause: Error): SignatureError {
  return new SignatureError('signature_failed', `node:crypto could not ${operation} with ${scheme}`, { cause })
}

/** A `Buffer` as what the interface promises. */
function plain(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

/** What stands in front of a raw key in DER: PKCS #8 and SPKI, RFC 9881 (ML-DSA, seed form) and RFC 9909 (SLH-DSA). */
const der: Readonly<Record<SignatureScheme, { secret: string; publicKey: string }>> = {
  'ml-dsa-44': {
    secret: '3034020100300b060960864801650304031104228020',
    publicKey: '30820532300b06096086480165030403110382052100',
  },
  'slh-dsa-sha2-128f': {
    secret: '3052020100300b06096086480165030403150440',
    publicKey: '3030300b0609608648016503040315032100',
  },
}

function importSecret(crypto: NodeCrypto, scheme: SignatureScheme, secret: Uint8Array): unknown {
  return crypto.createPrivateKey({ key: derOf(der[scheme].secret, secret), format: 'der', type: 'pkcs8' })
}

function importPublic(crypto: NodeCrypto, scheme: SignatureScheme, publicKey: Uint8Array): unknown {
  return crypto.createPublicKey({ key: derOf(der[scheme].publicKey, publicKey), format: 'der', type: 'spki' })
}

function derOf(prefix: string, raw: Uint8Array): Uint8Array {
  const front = prefix.length / 2
  const bytes = new Uint8Array(front + raw.length)
  for (let at = 0; at < front; at++) bytes[at] = Number.parseInt(prefix.slice(2 * at, 2 * at + 2), 16)
  bytes.set(raw, front)
  return bytes
}
