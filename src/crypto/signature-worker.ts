import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { SignatureScheme } from './keys.js'

/** What a worker is asked; it answers in order, one {@link SignatureAnswer} each. */
export type SignatureRequest =
  | { scheme: SignatureScheme; secret: Uint8Array; message: Uint8Array }
  | { scheme: SignatureScheme; publicKey: Uint8Array; message: Uint8Array; signature: Uint8Array }

export type SignatureAnswer = { value: Uint8Array | boolean } | { error: unknown }

/**
 * The worker, as text. A worker needs a file that Node can run, and beside this module there is one only after a build:
 * under Vitest and other runners of TypeScript it is a `.ts` file, which a worker of Node 20 cannot load. Text runs
 * the same everywhere, so what the tests run is what is shipped. It needs nothing of ours: the lengths were checked
 * before, and noble is imported by the address that it has for the main thread.
 */
const source = `
const { createHash } = require('node:crypto')
const { parentPort, workerData } = require('node:worker_threads')

const load = Promise.all([import(workerData.mlDsa), import(workerData.slhDsa)])

load.then(([{ ml_dsa44: mlDsa }, { slh_dsa_sha2_128f: slhDsa }]) => {
  // Expanding an ML-DSA seed is a quarter of the time of a signature: keep the keys in use, by digest, a few at most.
  const expanded = new Map()
  const expand = (seed) => {
    const name = createHash('sha256').update(seed).digest('latin1')
    if (!expanded.has(name)) {
      if (expanded.size >= 64) expanded.clear()
      expanded.set(name, mlDsa.keygen(seed).secretKey)
    }
    return expanded.get(name)
  }
  const answer = ({ scheme, secret, publicKey, message, signature }) => {
    const dsa = scheme === 'ml-dsa-44' ? mlDsa : slhDsa
    if (signature !== undefined) return dsa.verify(signature, message, publicKey)
    return dsa.sign(message, dsa === mlDsa ? expand(secret) : secret)
  }
  parentPort.on('message', (request) => {
    try {
      parentPort.postMessage({ value: answer(request) })
    } catch (error) {
      parentPort.postMessage({ error })
    }
  })
}).catch((error) => {
  // Out of the promise, so that it ends the worker and reaches the main thread whatever the rejection mode is.
  setImmediate(() => { throw error })
})
`

/** Starts a worker that answers {@link SignatureRequest}s with `@noble/post-quantum`. */
export function startSignatureWorker(): Worker {
  const { resolve } = createRequire(import.meta.url)
  const address = (specifier: string): string => pathToFileURL(resolve(specifier)).href
  return new Worker(source, {
    eval: true,
    name: 'sion-signatures',
    workerData: {
      mlDsa: address('@noble/post-quantum/ml-dsa.js'),
      slhDsa: address('@noble/post-quantum/slh-dsa.js'),
    },
    // Neither the flags and NODE_OPTIONS of the process (loaders, inspectors: they cost time and may print) nor its secrets.
    execArgv: [],
    env: {},
  })
}
