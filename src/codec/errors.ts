/**
 * An error a caller can act on. `code` is stable and snake_case, for programs; `message` is one line for people and
 * names the thing, the limit and the value. No secret and no payment payload is ever put into either.
 */
export class SionError extends Error {
  override readonly name: string = 'SionError'

  constructor(
    readonly code: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super(message, options)
  }
}

/** Input that cannot be read: a flag, a JSON field, hex, an amount, bytes. `field` names it. Exit code 2, HTTP 400. */
export class InputError extends SionError {
  override readonly name = 'InputError'

  constructor(
    readonly field: string,
    problem: string,
    options?: { cause?: unknown; code?: string },
  ) {
    super(options?.code ?? 'invalid_input', `${field}: ${problem}`, options)
  }
}

/** The message of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
