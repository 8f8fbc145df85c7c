import type { NonceStore } from '../../../src/x402/nonce-store.js'
import { memoryNonceStore } from '../../../src/x402/stores/index.js'

/** A store in memory whose steps a test can hold, fail and count. */
export interface WatchedStore extends NonceStore {
  /** Called before a nonce is spent; a promise holds the step, a rejection fails it. */
  beforeSpend: (() => Promise<void>) | undefined
  beforeClaim: (() => Promise<void>) | undefined
  /** Nonces spent, and claims given up. */
  readonly spent: string[]
  readonly released: string[]
  /** Resolves when `count` claims in all have been given up. */
  releasedTimes(count: number): Promise<void>
}

export function watchedStore(inner: NonceStore = memoryNonceStore()): WatchedStore {
  const waiting: { count: number; resolve: () => void }[] = []
  const store: WatchedStore = {
    ...inner,
    beforeSpend: undefined,
    beforeClaim: undefined,
    spent: [],
    released: [],
    async claim(claim) {
      await store.beforeClaim?.()
      return inner.claim(claim)
    },
    async spend(nonce, holder) {
      await store.beforeSpend?.()
      const spent = await inner.spend(nonce, holder)
      if (spent) store.spent.push(nonce)
      return spent
    },
    async release(nonce, holder) {
      await inner.release(nonce, holder)
      store.released.push(nonce)
      for (const { count, resolve } of waiting) if (store.released.length >= count) resolve()
    },
    releasedTimes(count) {
      return new Promise((resolve) => {
        if (store.released.length >= count) resolve()
        else waiting.push({ count, resolve })
      })
    },
  }
  return store
}

/** A promise with its ends in a test's hand. */
export function gateOf(): { readonly opened: Promise<void>; readonly reached: Promise<void>; open(): void; fail(error: Error): void; wait(): Promise<void> } {
  let open: () => void = () => undefined
  let fail: (error: Error) => void = () => undefined
  let arrive: () => void = () => undefined
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  opened.catch(() => undefined)
  const reached = new Promise<void>((resolve) => {
    arrive = resolve
  })
  return {
    opened,
    reached,
    open: () => open(),
    fail: (error) => fail(error),
    wait() {
      arrive()
      return opened
    },
  }
}
