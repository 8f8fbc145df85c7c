/** What the desk needs from outside, passed in: it reads no clock, draws no randomness and prints nothing itself. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
}

/** As pino has it: fields for programs, one line for people. Positions and amounts only, never an element. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Random bytes from a cryptographic source. */
export type RandomBytes = (length: number) => Uint8Array

export const systemClock: Clock = { now: () => Date.now() }

export const silentLogger: Logger = { info: ignore, warn: ignore, error: ignore }

function ignore(): void {}
