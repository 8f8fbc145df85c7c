/**
 * What the runtime offers natively, found without importing anything: this package also runs where there is no
 * `node:` module at all (edge runtimes, browsers), and a bundler must not meet one on the way.
 */
export interface NodeCrypto {
  hash?: (algorithm: string, data: Uint8Array, encoding: 'buffer') => Uint8Array
  createHmac?: (algorithm: string, key: Uint8Array) => { update(data: Uint8Array): { digest(): Uint8Array } }
  createPrivateKey(options: { key: Uint8Array; format: 'der'; type: 'pkcs8' }): unknown
  createPublicKey(options: { key: Uint8Array; format: 'der'; type: 'spki' }): unknown
  sign(algorithm: null, data: Uint8Array, key: unknown): Uint8Array
  sign(algorithm: null, data: Uint8Array, key: unknown, done: (error: Error | null, signature: Uint8Array) => void): void
  verify(algorithm: null, data: Uint8Array, key: unknown, signature: Uint8Array): boolean
  verify(
    algorithm: null,
    data: Uint8Array,
    key: unknown,
    signature: Uint8Array,
    done: (error: Error | null, valid: boolean) => void,
  ): void
}

interface ProcessLike {
  getBuiltinModule?: (id: string) => unknown
}

/** `node:crypto` where this runtime has it (Node 20.16 and later, Bun, Deno), else undefined. */
export function nodeCrypto(): NodeCrypto | undefined {
  const { process } = globalThis as { process?: ProcessLike }
  return process?.getBuiltinModule?.('node:crypto') as NodeCrypto | undefined
}

/** Cryptographically secure random bytes, from Web Crypto: present in every runtime we support. */
export function randomBytes(length: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(length))
}
