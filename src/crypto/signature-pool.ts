import { availableParallelism } from 'node:os'
import type { DualKeys, SignatureScheme } from './keys.js'
import { nativeBackend } from './native-signatures.js'
import { SignatureError } from './signature-error.js'
import { closed, SignatureThreads } from './signature-threads.js'
import { startSignatureWorker } from './signature-worker.js'
import { nativeSignatures, signingSecret, wellFormed, type Signatures } from './signatures.js'

export interface SignaturePool extends Signatures {
  /** Whether both schemes run natively here. */
  readonly native: boolean
  /**
   * Rejects what waits and what workers are busy with (`signature_pool_closed`), lets native work that has begun
   * finish, and resolves when no thread is left. What comes later is rejected in the same way.
   */
  close(): Promise<void>
}

/**
 * Signatures that never run on the event loop: natively in the runtime's thread pool, or else with
 * `@noble/post-quantum` in worker threads, which start with the first work. Work is done in the order in which it came,
 * `threads` (1 to 64, else min(cores, 4)) at a time; natively too, since the same few threads serve files and DNS.
 *
 * A pool that is idle keeps no process alive, and one that works does. A worker that crashes rejects what it was doing
 * with `signature_worker_failed` and is replaced at the next work; nothing is tried twice. Creating a pool runs the
 * native self-tests, some 80 ms on Node 24: at start, not within a request.
 *
 * @throws SignatureError `invalid_option`.
 */
export function createSignaturePool(options: { threads?: number } = {}): SignaturePool {
  const { threads = Math.max(1, Math.min(availableParallelism(), 4)), ...unknown } = options
  for (const name of Object.keys(unknown)) {
    throw new SignatureError('invalid_option', `a signature pool has no option ${JSON.stringify(name)}`)
  }
  if (!Number.isInteger(threads) || threads < 1 || threads > 64) {
    throw new SignatureError('invalid_option', `threads: expected a whole number from 1 to 64, not ${threads}`)
  }
  return new Pool(threads)
}

class Pool implements SignaturePool {
  readonly native = nativeSignatures()
  readonly #queue: Queue
  readonly #workers = new SignatureThreads(startSignatureWorker)
  #closing: Promise<void> | undefined

  constructor(threads: number) {
    this.#queue = new Queue(threads)
  }

  async sign(scheme: SignatureScheme, keys: DualKeys, message: Uint8Array): Promise<Uint8Array> {
    // Copies: the work may begin much later, and a view would make a worker receive all the memory behind it.
    const secret = copy(signingSecret(scheme, keys, message))
    const digest = copy(message)
    const native = nativeBackend(scheme)
    const signature = await this.#queue.run(() =>
      native === undefined
        ? this.#workers.run({ scheme, secret, message: digest })
        : native.signInBackground(secret, digest),
    )
    if (typeof signature === 'boolean') throw answeredAnotherQuestion(scheme)
    return signature
  }

  async verify(
    scheme: SignatureScheme,
    publicKey: Uint8Array,
    message: Uint8Array,
    signature: Uint8Array,
  ): Promise<boolean> {
    if (!wellFormed(scheme, publicKey, message, signature)) return false
    const request = { scheme, publicKey: copy(publicKey), message: copy(message), signature: copy(signature) }
    const native = nativeBackend(scheme)
    const valid = await this.#queue.run(() =>
      native === undefined
        ? this.#workers.run(request)
        : native.verifyInBackground(request.publicKey, request.message, request.signature),
    )
    if (typeof valid !== 'boolean') throw answeredAnotherQuestion(scheme)
    return valid
  }

  close(): Promise<void> {
    this.#closing ??= Promise.all([this.#queue.close(), this.#workers.close()]).then(() => {})
    return this.#closing
  }
}

function copy(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes)
}

function answeredAnotherQuestion(scheme: SignatureScheme): SignatureError {
  return new SignatureError('signature_worker_failed', `a worker gave the answer to another question about ${scheme}`)
}

/** At most `limit` jobs at a time, the others in the order in which they came. */
class Queue {
  readonly #waiting: { begin: () => void; reject: (error: SignatureError) => void }[] = []
  #working = 0
  #closed = false
  #empty: (() => void) | undefined

  constructor(private readonly limit: number) {}

  async run<T>(job: () => Promise<T>): Promise<T> {
    if (this.#closed) throw closed()
    if (this.#working < this.limit) this.#working++
    else await new Promise<void>((begin, reject) => this.#waiting.push({ begin, reject }))
    try {
      return await job()
    } finally {
      this.#next()
    }
  }

  /** Rejects what waits, and resolves when what had begun is over. */
  async close(): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#waiting.splice(0)) reject(closed())
    if (this.#working > 0) await new Promise<void>((resolve) => (this.#empty = resolve))
  }

  /** The place goes straight to who waits longest: a newcomer cannot take it in between. */
  #next(): void {
    const next = this.#waiting.shift()
    if (next !== undefined) return next.begin()
    this.#working--
    if (this.#working === 0) this.#empty?.()
  }
}
