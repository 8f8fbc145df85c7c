import type { Id } from '../../codec/index.js'
import { randomBytes } from '../../crypto/runtime.js'
import type { ClaimAnswer, NonceClaim, NonceStore } from '../nonce-store.js'

interface NonceRecord {
  readonly payment: Id
  holder: string
  leaseUntil: number
  spent: boolean
  readonly keepUntil: number
}

/** Looking through all records for old ones is put off until there are this many more than after the last look. */
const SWEEP_EVERY = 1_024

/**
 * Nonces in this process's memory: for tests, and for a seller that may forget on a restart which payments it has
 * answered. The secret is lost with it, so quotes of before are unknown after.
 */
export function memoryNonceStore({ now = Date.now }: { now?: () => number } = {}): NonceStore {
  const records = new Map<string, NonceRecord>()
  const secret = randomBytes(32)
  let sweepAt = SWEEP_EVERY

  function sweep(): void {
    if (records.size < sweepAt) return
    const seconds = now() / 1_000
    for (const [nonce, { keepUntil }] of records) if (keepUntil < seconds) records.delete(nonce)
    sweepAt = records.size + SWEEP_EVERY
  }

  function read(nonce: string): NonceRecord | undefined {
    const record = records.get(nonce)
    return record !== undefined && record.keepUntil * 1_000 >= now() ? record : undefined
  }

  function heldBy(nonce: string, holder: string): NonceRecord | undefined {
    const record = read(nonce)
    return record?.holder === holder ? record : undefined
  }

  return {
    async claim({ nonce, payment, holder, leaseMs, keepUntil }: NonceClaim): Promise<ClaimAnswer> {
      const record = read(nonce)
      if (record === undefined) {
        sweep()
        records.set(nonce, { payment, holder, leaseUntil: now() + leaseMs, spent: false, keepUntil })
        return 'claimed'
      }
      if (record.payment !== payment) return 'bound'
      if (record.spent) return 'spent'
      if (record.leaseUntil > now() && record.holder !== holder) return 'held'
      record.holder = holder
      record.leaseUntil = now() + leaseMs
      return 'claimed'
    },
    async renew(nonce, holder, leaseMs) {
      const record = heldBy(nonce, holder)
      if (record === undefined || record.spent) return false
      record.leaseUntil = now() + leaseMs
      return true
    },
    async spend(nonce, holder) {
      const record = heldBy(nonce, holder)
      if (record === undefined) return false
      record.spent = true
      return true
    },
    async release(nonce, holder) {
      const record = heldBy(nonce, holder)
      if (record === undefined) return
      record.holder = ''
      record.leaseUntil = 0
      record.spent = false
    },
    async boundTo(nonce) {
      return read(nonce)?.payment
    },
    async secret() {
      return secret
    },
    async close() {},
  }
}
