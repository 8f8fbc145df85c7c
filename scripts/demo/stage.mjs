import picocolors from 'picocolors'

// picocolors also colours what goes to a CI's log.
const pc = picocolors.createColors(picocolors.isColorSupported && process.stdout.isTTY === true)
const TICK_MS = 100
const ERASE_LINE = '\r\u001b[2K'

/** What the demo prints, and what it must close when it ends, however it ends. */
export class Stage {
  #scene = 0
  #endings = []
  #waiting
  #closing = false

  title(text) {
    this.#print(pc.bold(text))
  }

  scene(title) {
    this.#scene++
    this.#print('')
    this.#print(`${pc.cyan(String(this.#scene))}  ${pc.bold(title)}`)
  }

  say(text) {
    this.#print(`   ${text}`)
  }

  /** Something that was checked, and is so. */
  good(text) {
    this.#print(`   ${pc.green('✓')} ${text}`)
  }

  /** Names and values in two columns. */
  facts(pairs) {
    const width = Math.max(...pairs.map(([name]) => name.length))
    for (const [name, value] of pairs) this.#print(`     ${pc.dim(name.padEnd(width))}  ${value}`)
  }

  end(text) {
    this.#print('')
    this.#print(text)
  }

  failed(error) {
    // What is still playing fails once its ledger is closed under it: that is the end, not a failure.
    if (this.#closing) return
    this.#stopWaiting()
    const message = error instanceof Error ? error.message : String(error)
    process.stderr.write(`${pc.red('error:')} the demo failed${this.#scene === 0 ? '' : ` in scene ${this.#scene}`}: ${message}\n`)
    if (process.env['SION_DEBUG'] && error instanceof Error) process.stderr.write(`${error.stack}\n`)
  }

  /** Shows that something is being waited for: a line that counts on a terminal, a plain line elsewhere. */
  async wait(what, work) {
    const started = performance.now()
    const seconds = () => ((performance.now() - started) / 1_000).toFixed(1)
    if (!process.stdout.isTTY) {
      this.#print(`   … ${what}`)
      return work
    }
    const show = () => process.stdout.write(`${ERASE_LINE}   ${pc.yellow('…')} ${what} ${pc.dim(`${seconds()} s`)}`)
    show()
    this.#waiting = setInterval(show, TICK_MS)
    try {
      return await work
    } finally {
      this.#stopWaiting()
    }
  }

  /** Closed when the demo ends, the last one first. */
  closeLater(close) {
    this.#endings.push(close)
  }

  async close() {
    this.#closing = true
    this.#stopWaiting()
    for (const close of this.#endings.reverse()) await close()
    this.#endings = []
  }

  /** The exit code of Ctrl-C or SIGTERM, once one comes. */
  interrupted() {
    return new Promise((resolve) => {
      process.once('SIGINT', () => resolve(130))
      process.once('SIGTERM', () => resolve(143))
    })
  }

  #stopWaiting() {
    if (this.#waiting === undefined) return
    clearInterval(this.#waiting)
    process.stdout.write(ERASE_LINE)
    this.#waiting = undefined
  }

  #print(line) {
    if (this.#closing) return
    process.stdout.write(`${this.#waiting === undefined ? '' : ERASE_LINE}${line}\n`)
  }
}
