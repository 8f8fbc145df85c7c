/**
 * Holds what a command printed against what a document shows of it. Equal must be everything but what differs from run
 * to run: ids (each id of the document stands for one of the run, the same throughout), Pulse numbers, how much of the
 * stake signed, and whatever the document leaves out with `…`.
 */
export class Transcript {
  /** Hex of the document → hex of this run. */
  readonly #ids = new Map<string, string>()
  readonly #ports: ReadonlyMap<string, string>

  /** @param ports ports that the document names → ports of this run. */
  constructor(ports: ReadonlyMap<string, string>) {
    this.#ports = ports
  }

  /** A command or a file of the document, as it is to be run. */
  toRun(text: string): string {
    let run = text.replaceAll(hex, (id) => this.#ids.get(id) ?? id)
    for (const [shown, real] of this.#ports) run = run.replaceAll(new RegExp(String.raw`\b${shown}\b`, 'g'), real)
    return run
  }

  /** Undefined if `printed` is what `shown` shows; else the first line that is not. */
  compare(shown: string, printed: string): string | undefined {
    const expected = shown.split('\n')
    const actual = this.#asShown(printed).split('\n')
    let at = 0
    for (const [index, line] of expected.entries()) {
      if (line.trim() === '…') {
        const next = expected[index + 1]
        if (next === undefined) return undefined
        while (at < actual.length && !this.#matches(next, actual[at] ?? '')) at++
        continue
      }
      const found = actual[at++]
      if (found === undefined) return `missing: ${line}`
      if (!this.#matches(line, found)) return `expected: ${line}\nprinted:  ${found}`
      this.#learn(line, found)
    }
    return at < actual.length ? `not shown: ${actual[at]}` : undefined
  }

  #asShown(printed: string): string {
    let text = printed
    for (const [shown, real] of this.#ports) text = text.replaceAll(`:${real}`, `:${shown}`)
    return text
  }

  #matches(shown: string, printed: string): boolean {
    const pattern = shown
      .split('…')
      .map((part) => varying(part).replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll(hex, (id) => `[0-9a-f]{${id.length}}`))
      .join('.*')
    return new RegExp(`^${pattern}$`).test(varying(printed)) && this.#agrees(shown, printed)
  }

  /** Whether no id of the document would have to stand for two of the run. */
  #agrees(shown: string, printed: string): boolean {
    return pairs(shown, printed).every(([id, real]) => (this.#ids.get(id) ?? real) === real)
  }

  #learn(shown: string, printed: string): void {
    for (const [id, real] of pairs(shown, printed)) this.#ids.set(id, real)
  }
}

const hex = /(?<![0-9a-zA-Z])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-zA-Z])/g

function pairs(shown: string, printed: string): [string, string][] {
  // After a `…` nothing can be paired by place.
  const [start = ''] = shown.split('…')
  const ids = start.match(hex) ?? []
  const real = printed.match(hex) ?? []
  return ids.flatMap((id, i) => {
    const other = real[i]
    return other === undefined ? [] : [[id, other.slice(0, id.length)] as [string, string]]
  })
}

/** What differs from run to run and is no id. */
function varying(line: string): string {
  return line
    .replaceAll(/(Pulse |certified |round |"pulse": |"round": |"certified_pulse": )[0-9]+/g, '$1N')
    .replaceAll(/(300000|400000) of 400000 stake/g, 'N of 400000 stake')
    .replaceAll(/"(signed|signedStake)": (300000|400000)/g, '"$1": N')
    .trimEnd()
}
