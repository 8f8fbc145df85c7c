import { open, type Database } from 'lmdb'
import * as P from 'micro-packed'
import { count, hexBytes, id, SionError, unpack } from '../../codec/index.js'
import { randomBytes } from '../../crypto/runtime.js'
import type { ClaimAnswer, NonceClaim, NonceStore } from '../nonce-store.js'

/** Grows when a record's layout does; a folder of a newer format is refused. */
const FORMAT = 1

interface NonceRecord {
  payment: string
  holder: string
  leaseUntil: number
  spent: boolean
  keepUntil: number
}

const nonceRecord: P.CoderType<NonceRecord> = P.struct({
  payment: id,
  holder: hexBytes(16),
  leaseUntil: count,
  spent: P.bool,
  keepUntil: count,
})

/** Holders are random: none is ever this. */
const NOBODY = '0'.repeat(32)

const encoder = new TextEncoder()
const formatKey = encoder.encode('x402/format')
const secretKey = encoder.encode('x402/secret')
const nonceKey = (nonce: string): Uint8Array => encoder.encode(`x402/nonce/${nonce}`)
const nonceRange = { start: encoder.encode('x402/nonce/'), end: encoder.encode('x402/nonce0') }

/** Forgotten in one step at most, so that a sweep never holds up a payment. */
const SWEEP_EVERY = 1_024

/**
 * Nonces in an LMDB folder: a restart forgets neither a spent nonce nor a claimed one. Every answer is given after the
 * write is on disk; writes of concurrent payments share one commit. Several processes may share the folder.
 *
 * @throws SionError `store_newer_format` when a newer version wrote the folder, `store_unavailable` when it cannot be opened.
 */
export function embeddedNonceStore(options: { folder: string; now?: () => number }): NonceStore {
  const { folder, now = Date.now } = options
  const db = openFolder(folder)
  let claims = 0

  function read(nonce: string): NonceRecord | undefined {
    const bytes = db.getBinary(nonceKey(nonce))
    if (bytes === undefined) return undefined
    const record = unpack(nonceRecord, new Uint8Array(bytes), 'nonce record')
    return record.keepUntil * 1_000 >= now() ? record : undefined
  }

  function heldBy(nonce: string, holder: string): NonceRecord | undefined {
    const record = read(nonce)
    return record?.holder === holder ? record : undefined
  }

  function write(nonce: string, record: NonceRecord): void {
    db.put(nonceKey(nonce), nonceRecord.encode(record))
  }

  /** One write transaction; its answer is given when it is on disk. */
  async function atomically<T>(step: () => T): Promise<T> {
    try {
      return await db.transaction(step)
    } catch (cause) {
      throw new SionError('store_unavailable', `the store in ${folder} does not take writes; look at its disk`, { cause })
    }
  }

  function reading<T>(look: () => T): T {
    try {
      return look()
    } catch (cause) {
      throw new SionError('store_unavailable', `the store in ${folder} cannot be read; look at its disk`, { cause })
    }
  }

  function sweep(): void {
    const seconds = now() / 1_000
    const old: Uint8Array[] = []
    for (const { key, value } of db.getRange({ ...nonceRange, limit: SWEEP_EVERY * 4 })) {
      if (unpack(nonceRecord, new Uint8Array(value), 'nonce record').keepUntil < seconds) old.push(new Uint8Array(key))
    }
    for (const key of old) db.remove(key)
  }

  return {
    claim({ nonce, payment, holder, leaseMs, keepUntil }: NonceClaim): Promise<ClaimAnswer> {
      return atomically(() => {
        if (++claims % SWEEP_EVERY === 0) sweep()
        const record = read(nonce)
        if (record !== undefined) {
          if (record.payment !== payment) return 'bound'
          if (record.spent) return 'spent'
          if (record.leaseUntil > now() && record.holder !== holder) return 'held'
        }
        write(nonce, { payment, holder, leaseUntil: now() + leaseMs, spent: false, keepUntil })
        return 'claimed'
      })
    },
    renew(nonce, holder, leaseMs) {
      return atomically(() => {
        const record = heldBy(nonce, holder)
        if (record === undefined || record.spent) return false
        write(nonce, { ...record, leaseUntil: now() + leaseMs })
        return true
      })
    },
    spend(nonce, holder) {
      return atomically(() => {
        const record = heldBy(nonce, holder)
        if (record === undefined) return false
        write(nonce, { ...record, spent: true })
        return true
      })
    },
    release(nonce, holder) {
      return atomically(() => {
        const record = heldBy(nonce, holder)
        if (record !== undefined) write(nonce, { ...record, holder: NOBODY, leaseUntil: 0, spent: false })
      })
    },
    async boundTo(nonce) {
      return reading(() => read(nonce)?.payment)
    },
    async secret() {
      const kept = reading(() => db.getBinary(secretKey))
      if (kept !== undefined) return new Uint8Array(kept)
      return atomically(() => {
        const other = db.getBinary(secretKey)
        if (other !== undefined) return new Uint8Array(other)
        const fresh = randomBytes(32)
        db.put(secretKey, fresh)
        return fresh
      })
    },
    async close() {
      await db.close()
    },
  }
}

function openFolder(folder: string): Database<Uint8Array, Uint8Array> {
  let db: Database<Uint8Array, Uint8Array>
  try {
    db = open<Uint8Array, Uint8Array>({ path: folder, encoding: 'binary', keyEncoding: 'binary', noSubdir: false })
  } catch (cause) {
    throw new SionError('store_unavailable', `the store in ${folder} cannot be opened: is it a folder this user may write?`, {
      cause,
    })
  }
  const written = db.getBinary(formatKey)
  if (written === undefined) db.putSync(formatKey, Uint8Array.of(FORMAT))
  else if (written[0] !== FORMAT) {
    void db.close()
    throw new SionError(
      'store_newer_format',
      `the store in ${folder} has format ${written[0]}, this version reads ${FORMAT}: use the version that wrote it`,
    )
  }
  return db
}
