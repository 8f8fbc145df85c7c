/** What a node that stops answering looks like: while closed, every request hangs. For tests of what callers do then. */
export class Gate {
  #opened: Promise<void> | undefined
  #open: (() => void) | undefined

  close(): void {
    this.#opened ??= new Promise((resolve) => (this.#open = resolve))
  }

  reopen(): void {
    this.#open?.()
    this.#opened = undefined
  }

  async open(): Promise<void> {
    while (this.#opened !== undefined) await this.#opened
  }
}
