import { setTimeout as pause } from 'node:timers/promises'

/** Asks again until the answer is `expected`; what it was at last, in the error, when that takes longer than `seconds`. */
export async function eventually<T>(ask: () => Promise<T>, expected: T, seconds = 20): Promise<void> {
  const giveUpAt = performance.now() + seconds * 1_000
  for (;;) {
    const found = await ask()
    if (Object.is(found, expected)) return
    if (performance.now() > giveUpAt) throw new Error(`still ${String(found)}, not ${String(expected)}, after ${seconds} s`)
    await pause(50)
  }
}
