import { InputError, SionError } from '../codec/index.js'

/** What a command's exit code says (docs/cli.md). */
export const EXIT = {
  /** Done as asked. */
  ok: 0,
  /** Could not do it: the node is out of reach, a file cannot be read, an answer does not verify. */
  failed: 1,
  /** Bad input: a flag, an amount, a name, hex. Nothing was sent. */
  input: 2,
  /** Not sent: refused on this side before anything left, such as a price over the cap. */
  notSent: 3,
  /** The ledger or the server refused, or the transaction failed: nothing was bought. */
  refused: 4,
  /** Not known: it may have been paid. The error says how to ask again. */
  unknown: 5,
  /** Stopped with Ctrl-C. */
  interrupted: 130,
  /** Stopped with SIGTERM. */
  terminated: 143,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]

/** An error with an exit code of its own. Thrown by a command, printed as one `error:` line. */
export class ExitError extends SionError {
  override readonly name = 'ExitError'

  constructor(
    readonly exitCode: ExitCode,
    code: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(code, message, options)
  }
}

/** The exit code for whatever a command threw. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof ExitError) return error.exitCode
  return error instanceof InputError ? EXIT.input : EXIT.failed
}
