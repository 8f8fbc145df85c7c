/** Where the node says what happens: one line each. Only the command line prints. */
export interface Logger {
  info(line: string): void
  warn(line: string): void
  error(line: string): void
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {} }
