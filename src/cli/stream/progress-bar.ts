/** Chains that are set up in a blink get no bar. */
const SHORTEST = 200_000
const WIDTH = 24
const REDRAW_MS = 50

/** Draws how far a chain's set-up is, on stderr where that is a terminal, and wipes it at the end. */
export function chainProgress(length: number): (done: number, total: number) => void {
  if (!process.stderr.isTTY || length < SHORTEST) return () => {}
  let drawnAt = 0
  return (done, total) => {
    if (done >= total) {
      process.stderr.write('\r\u001b[K')
      return
    }
    const now = Date.now()
    if (now - drawnAt < REDRAW_MS) return
    drawnAt = now
    const filled = Math.floor((done / total) * WIDTH)
    const bar = '█'.repeat(filled) + '░'.repeat(WIDTH - filled)
    process.stderr.write(`\r${bar} ${Math.floor((100 * done) / total)} % of a chain of ${total} elements`)
  }
}
