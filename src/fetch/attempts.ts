/** A payment that was signed for a call and whose answer has not been had yet. */
export interface Attempt {
  /** The `PAYMENT-SIGNATURE` header, which is the buyer's ticket: kept from logs, and in files only with mode 0600. */
  readonly header: string
  /** Digest of the ledger transaction. */
  readonly transaction: string
  /** Where the transaction itself must be submitted by the payer, in base64: payments by reference. */
  readonly submit?: string
  /** After this the seller does not take it any more, in milliseconds since the Unix epoch. */
  readonly goodUntil: number
}

/**
 * Where attempts are written down before they are sent, so that one call never pays twice: a call whose payment's fate
 * is unknown sends the same payment again, also after a crash where the log is durable.
 */
export interface AttemptLog {
  load(call: string): Promise<Attempt | undefined>
  save(call: string, attempt: Attempt): Promise<void>
  clear(call: string): Promise<void>
}

/** Attempts in this process's memory. */
export function memoryAttempts(): AttemptLog {
  const attempts = new Map<string, Attempt>()
  return {
    load: async (call) => attempts.get(call),
    async save(call, attempt) {
      attempts.set(call, attempt)
    },
    async clear(call) {
      attempts.delete(call)
    },
  }
}
