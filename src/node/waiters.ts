import type { Id } from '../codec/index.js'

/** Long polls: who waits for what became of a transaction, or for events. */
export class Waiters {
  readonly #waiting = new Map<Id | 'events', Set<() => void>>()

  /** How many wait. */
  get size(): number {
    let sum = 0
    for (const { size } of this.#waiting.values()) sum += size
    return sum
  }

  /** Until {@link Waiters.wake} (true), or until `ms` milliseconds are over or `signal` aborts (false). */
  wait(key: Id | 'events', ms: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      if (signal.aborted) return resolve(false)
      const end = (woken: boolean): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', giveUp)
        waiting.delete(wake)
        if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key)
        resolve(woken)
      }
      const wake = (): void => end(true)
      const giveUp = (): void => end(false)
      const waiting = this.#waiting.get(key) ?? new Set()
      this.#waiting.set(key, waiting.add(wake))
      const timer = setTimeout(giveUp, ms)
      signal.addEventListener('abort', giveUp)
    })
  }

  wake(key: Id | 'events'): void {
    for (const wake of this.#waiting.get(key) ?? []) wake()
  }
}
