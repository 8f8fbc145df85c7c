/**
 * Where a library says what happened; the program decides what becomes of it. Lines name digests, amounts, payers and
 * positions, never a header, a payload or a key.
 */
export interface Logger {
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

export const silent: Logger = { info() {}, warn() {}, error() {} }
