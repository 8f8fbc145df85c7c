import type { Worker } from 'node:worker_threads'
import { SignatureError } from './signature-error.js'
import type { SignatureAnswer, SignatureRequest } from './signature-worker.js'

/**
 * Worker threads, started when there is work and no idle one. How many work at once is up to the caller, who awaits
 * {@link SignatureThreads.run}: each call has a worker to itself. A busy worker keeps the process alive, an idle one does not.
 */
export class SignatureThreads {
  readonly #threads = new Set<Thread>()
  #closed = false

  constructor(private readonly start: () => Worker) {}

  /**
   * @throws SignatureError `signature_worker_failed` if the worker stops before it has answered (the next call gets a
   * new one), `signature_pool_closed` if that was {@link SignatureThreads.close}, `signature_failed` if the work itself threw.
   */
  async run(request: SignatureRequest): Promise<Uint8Array | boolean> {
    if (this.#closed) throw closed()
    const answer = await this.#idle().ask(request)
    if ('error' in answer) {
      throw new SignatureError('signature_failed', `${request.scheme} failed in its worker`, { cause: answer.error })
    }
    return answer.value
  }

  /** Ends every worker. What they were working on is rejected. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#threads].map((thread) => thread.end()))
  }

  #idle(): Thread {
    for (const thread of this.#threads) if (!thread.busy) return thread
    const thread = new Thread(this.#started(), () => this.#threads.delete(thread))
    this.#threads.add(thread)
    return thread
  }

  #started(): Worker {
    try {
      return this.start()
    } catch (cause) {
      throw new SignatureError('signature_worker_failed', 'a signature worker could not be started', { cause })
    }
  }
}

interface Asked {
  resolve: (answer: SignatureAnswer) => void
  reject: (error: SignatureError) => void
}

/** idle ⇄ busy, and from either to gone: crashed or ended. */
class Thread {
  #asked: Asked | undefined
  #cause: unknown
  #ending = false

  constructor(
    private readonly worker: Worker,
    gone: () => void,
  ) {
    worker.unref()
    worker.on('message', (answer: SignatureAnswer) => this.#settle()?.resolve(answer))
    // An uncaught error is always followed by 'exit'.
    worker.on('error', (error) => {
      this.#cause = error
    })
    worker.on('exit', (code) => {
      gone()
      this.#settle()?.reject(this.#ending ? closed() : crashed(code, this.#cause))
    })
  }

  get busy(): boolean {
    return this.#asked !== undefined
  }

  ask(request: SignatureRequest): Promise<SignatureAnswer> {
    return new Promise((resolve, reject) => {
      this.#asked = { resolve, reject }
      this.worker.ref()
      this.worker.postMessage(request, [])
    })
  }

  async end(): Promise<void> {
    this.#ending = true
    await this.worker.terminate()
  }

  #settle(): Asked | undefined {
    const asked = this.#asked
    this.#asked = undefined
    this.worker.unref()
    return asked
  }
}

export function closed(): SignatureError {
  return new SignatureError('signature_pool_closed', 'the signature pool is closed')
}

function crashed(code: number, cause: unknown): SignatureError {
  return new SignatureError(
    'signature_worker_failed',
    `a signature worker stopped with code ${code} before it had answered`,
    { cause },
  )
}
