/** A payment that was signed for a call and whose answer has not been had yet. */
export interface Attempt {
  /** The address that quoted, and takes, the payment. */
  readonly url: string
  /** The `PAYMENT-SIGNATURE` header, which is the buyer's ticket: kept from logs, and in files only with mode 0600. */
  readonly header: string
  /** Digest of the ledger transaction. */
  readonly transaction: string
  /** Where the payer submits the transaction itself, in base64: payments by reference. */
  readonly submit?: string
  /** Until then the payer may submit it, in milliseconds since the Unix epoch: later the quote buys nothing new. */
  readonly submitUntil: number
  /** After this the seller does not take it any more, in milliseconds since the Unix epoch. */
  readonly goodUntil: number
}

/**
 * Where attempts are written down before they are sent, so that one call never pays twice: a call whose payment's fate
 * is unknown sends the same payment again, also after a crash where the log is durable. Calls are equal where payer,
 * method, URL and body are, and several equal ones may be under way:
 *
 *     save ──▶ held by its call ── clear (answered) ──▶ gone
 *                  ▲   │
 *              take│   │ release, or the process that held it died
 *                  │   ▼
 *                  open
 */
export interface AttemptLog {
  /** An open attempt at this call, held from now on by the caller alone; undefined where there is none. */
  take(call: string): Promise<Attempt | undefined>
  /** Writes an attempt down, or changes the one of the same transaction; the caller holds it. */
  save(call: string, attempt: Attempt): Promise<void>
  /** Not answered yet: whoever makes this call next goes on with it. */
  release(call: string, attempt: Attempt): Promise<void>
  clear(call: string, attempt: Attempt): Promise<void>
}

/** Attempts in this process's memory. */
export function memoryAttempts(now: () => number = Date.now): AttemptLog {
  const attempts = new Map<string, Map<string, { attempt: Attempt; held: boolean }>>()
  const of = (call: string): Map<string, { attempt: Attempt; held: boolean }> => attempts.get(call) ?? new Map()
  return {
    async take(call) {
      for (const [transaction, entry] of of(call)) {
        if (entry.held) continue
        if (entry.attempt.goodUntil <= now()) of(call).delete(transaction)
        else {
          entry.held = true
          return entry.attempt
        }
      }
      return undefined
    },
    async save(call, attempt) {
      attempts.set(call, of(call).set(attempt.transaction, { attempt, held: true }))
    },
    async release(call, attempt) {
      const entry = of(call).get(attempt.transaction)
      if (entry !== undefined) entry.held = false
    },
    async clear(call, attempt) {
      const left = of(call)
      left.delete(attempt.transaction)
      if (left.size === 0) attempts.delete(call)
    },
  }
}
