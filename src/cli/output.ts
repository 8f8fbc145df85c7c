/** The command's result: what a pipe gets. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** What a person watches meanwhile. */
export function progress(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** JSON as the reference shows it: keys sorted, indented by two. Bigints have no place in it. */
export function printJson(value: unknown): void {
  print(JSON.stringify(sortKeys(value), null, 2))
}

/** Lines for people: the result itself, or, where JSON is the result, progress. */
export function speaker(options: { json?: boolean | undefined }): (line: string) => void {
  return options.json === true ? progress : print
}

/** One line on stderr, whatever was thrown; the stack too if SION_DEBUG is set. */
export function printError(error: unknown): void {
  const message = error instanceof Error ? error.message : String(error)
  progress(`error: ${oneLine(message)}`)
  if (process.env['SION_DEBUG'] && error instanceof Error) progress(error.stack ?? '')
}

/** Control characters have no business in a terminal when the text came over the network. */
export function oneLine(text: string): string {
  // eslint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim()
}

/** `sion events | head -1` closes our stdout early; the command still ends as it would have. */
export function surviveClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
    })
  }
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sortKeys(inner)]),
  )
}
