import { readFileSync } from 'node:fs'
import { Redis, type Cluster, type Result } from 'ioredis'
import { fromHex, isId, SionError, toHex } from '../../codec/index.js'
import { randomBytes } from '../../crypto/runtime.js'
import type { ClaimAnswer, NonceStore } from '../nonce-store.js'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    sionClaim(key: string, format: number, payment: string, holder: string, leaseMs: number, keepUntil: number): Result<string, Context>
    sionRenew(key: string, holder: string, leaseMs: number): Result<number, Context>
    sionSpend(key: string, holder: string): Result<number, Context>
    sionRelease(key: string, holder: string): Result<number, Context>
  }
}

/** Grows when a record's layout does; a record of a newer format is refused. */
const FORMAT = 1
const SECRET_KEY = 'sion:x402:secret'
const keyOf = (nonce: string): string => `sion:x402:nonce:${nonce}`

/**
 * Nonces in Redis, for any number of servers of one seller; a Cluster works too, each script touches one key. Time is
 * Redis's own, so servers' clocks do not matter. Run it with append-only persistence: what it forgets can be sold twice.
 *
 * @param at address such as `redis://127.0.0.1:6379`, or a connection, which stays the caller's to close.
 * @throws (from its methods) SionError `store_unavailable` while Redis is out of reach, `store_newer_format`.
 */
export function redisNonceStore(at: string | Redis | Cluster): NonceStore {
  const own = typeof at === 'string' ? connect(at) : undefined
  const redis = own ?? (at as Redis | Cluster)
  for (const name of ['claim', 'renew', 'spend', 'release']) {
    const lua = readFileSync(new URL(`lua/${name}.lua`, import.meta.url), 'utf8')
    redis.defineCommand(`sion${name[0]?.toUpperCase()}${name.slice(1)}`, { numberOfKeys: 1, lua })
  }

  return {
    async claim({ nonce, payment, holder, leaseMs, keepUntil }) {
      return parseClaim(await reached(redis.sionClaim(keyOf(nonce), FORMAT, payment, holder, leaseMs, keepUntil)))
    },
    async renew(nonce, holder, leaseMs) {
      return (await reached(redis.sionRenew(keyOf(nonce), holder, leaseMs))) === 1
    },
    async spend(nonce, holder) {
      return (await reached(redis.sionSpend(keyOf(nonce), holder))) === 1
    },
    async release(nonce, holder) {
      await reached(redis.sionRelease(keyOf(nonce), holder))
    },
    async boundTo(nonce) {
      const payment = await reached(redis.hget(keyOf(nonce), 'payment'))
      return isId(payment) ? payment : undefined
    },
    async secret() {
      // SET NX answers nothing when another server was first: then its secret is the secret.
      await reached(redis.set(SECRET_KEY, toHex(randomBytes(32)), 'NX'))
      return fromHex(await reached(redis.get(SECRET_KEY)), `Redis key ${SECRET_KEY}`, 32)
    },
    async close() {
      own?.disconnect()
    },
  }
}

/** A connection that says at once when Redis is away, instead of queueing payments for its return. */
function connect(url: string): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: true,
    maxRetriesPerRequest: 1,
    commandTimeout: 3_000,
    connectTimeout: 3_000,
    retryStrategy: (attempt) => Math.min(attempt * 100, 1_000),
  })
  // Each command that fails says so itself; without a listener ioredis prints every failed reconnection.
  redis.on('error', () => undefined)
  return redis
}

function parseClaim(answer: string): ClaimAnswer {
  if (answer === 'claimed' || answer === 'held' || answer === 'bound' || answer === 'spent') return answer
  throw new SionError('store_newer_format', `Redis holds a record of a newer format (${answer}), this version reads ${FORMAT}: use the version that wrote it`)
}

async function reached<T>(command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (cause) {
    throw new SionError('store_unavailable', 'Redis is out of reach: nothing was recorded', { cause })
  }
}
