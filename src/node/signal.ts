/** Something happened: look again. Whoever must not miss it takes its promise before it looks. */
export class Signal {
  readonly #waiting = new Set<() => void>()

  fire(): void {
    for (const resume of this.#waiting) resume()
  }

  /** Until the next {@link Signal.fire}, or for `ms` milliseconds. */
  wait(ms = Infinity): Promise<void> {
    return new Promise((resolve) => {
      const resume = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(resume)
        resolve()
      }
      // setTimeout takes at most 2^31 − 1, and fires at once above.
      const timer = ms < 2 ** 31 ? setTimeout(resume, ms) : undefined
      this.#waiting.add(resume)
    })
  }
}
