import { fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { open } from 'lmdb'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { NonceClaim, NonceStore } from '../../src/x402/nonce-store.js'
import { embeddedNonceStore, memoryNonceStore, redisNonceStore } from '../../src/x402/stores/index.js'
import { startRedis, type RedisServer } from '../support/redis.js'
import { describeNonceStore } from './nonce-store.contract.js'

const hex = (bytes: number): string => randomBytes(bytes).toString('hex')

function claimOf(changes: Partial<NonceClaim> = {}): NonceClaim {
  const keepUntil = Math.floor(Date.now() / 1_000) + 10_000
  return { nonce: hex(16), payment: hex(32), holder: hex(16), leaseMs: 60_000, keepUntil, ...changes }
}

/** A clock that only a test moves. */
function testClock(): { now: () => number; moved: () => Promise<number>; pass: (ms: number) => Promise<void> } {
  let at = 1_700_000_000_000
  return {
    now: () => at,
    moved: async () => at,
    async pass(ms) {
      at += ms
    },
  }
}

const temporary: string[] = []
async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'nonce-store-'))
  temporary.push(folder)
  return folder
}
afterAll(async () => {
  for (const folder of temporary) await rm(folder, { recursive: true, force: true })
})

describeNonceStore('memory', async () => {
  const clock = testClock()
  const store = memoryNonceStore({ now: clock.now })
  return { store, open: () => store, now: clock.moved, pass: clock.pass, end: async () => {} }
})

describeNonceStore('an LMDB folder', async () => {
  const clock = testClock()
  const folder = await temporaryFolder()
  const store = embeddedNonceStore({ folder, now: clock.now })
  // LMDB opens a folder once in a process: what another process sees is tested below.
  return { store, open: () => ({ ...store, close: async () => {} }), now: clock.moved, pass: clock.pass, end: () => store.close() }
})

describe('over Redis', () => {
  let server: RedisServer
  let databases = 0
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  describeNonceStore('Redis', async () => {
    // One server, a numbered database for each.
    const url = `${server.url}/${databases++}`
    const clock = new Redis(url)
    const store = redisNonceStore(url)
    const now = async (): Promise<number> => {
      const [seconds = 0, micros = 0] = await clock.time()
      return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000)
    }
    return {
      store,
      open: () => redisNonceStore(url),
      now,
      // Redis goes by its own clock, which no test moves: ask it until it is time.
      async pass(ms) {
        const until = (await now()) + ms
        while ((await now()) < until) await new Promise((resolve) => setTimeout(resolve, 5))
      },
      async end() {
        clock.disconnect()
        await store.close()
      },
    }
  })
})

describe('nonces in memory', () => {
  it('do not pile up: old records make way for new ones', async () => {
    const clock = testClock()
    const store = memoryNonceStore({ now: clock.now })
    const keepUntil = clock.now() / 1_000 + 60
    const first = claimOf({ keepUntil })
    await store.claim(first)
    for (let i = 0; i < 1_100; i++) await store.claim(claimOf({ keepUntil }))
    await clock.pass(60_001)
    for (let i = 0; i < 1_100; i++) await store.claim(claimOf({ keepUntil: keepUntil + 120 }))
    expect(await store.boundTo(first.nonce)).toBeUndefined()
  })
})

describe('nonces in an LMDB folder', () => {
  it('survive a restart: bound, claimed and spent ones, and the secret', async () => {
    const folder = await temporaryFolder()
    const before = embeddedNonceStore({ folder })
    const [spent, bound, claimed] = [claimOf(), claimOf(), claimOf()]
    for (const claim of [spent, bound, claimed]) await before.claim(claim)
    await before.spend(spent.nonce, spent.holder)
    await before.release(bound.nonce, bound.holder)
    const secret = await before.secret()
    await before.close()

    const after = embeddedNonceStore({ folder })
    expect(await after.claim({ ...spent, holder: hex(16) })).toBe('spent')
    expect(await after.claim(claimOf({ nonce: bound.nonce }))).toBe('bound')
    expect(await after.claim({ ...bound, holder: hex(16) })).toBe('claimed')
    expect(await after.claim({ ...claimed, holder: hex(16) })).toBe('held')
    expect(await after.spend(claimed.nonce, claimed.holder)).toBe(true)
    expect(Buffer.from(await after.secret())).toEqual(Buffer.from(secret))
    await after.close()
  })

  it('are shared by two processes: of a hundred claims from both, one is claimed, and both have one secret', async () => {
    const folder = await temporaryFolder()
    const { nonce, payment } = claimOf()
    const peers = [peerOn(folder, nonce, payment), peerOn(folder, nonce, payment)]
    await Promise.all(peers.map((peer) => peer.ready))
    const heard = await Promise.all(peers.map((peer) => peer.run()))
    const answers = heard.flatMap(({ answers }) => answers)
    expect(answers).toHaveLength(100)
    expect(answers.filter((answer) => answer === 'claimed')).toHaveLength(1)
    expect(answers.filter((answer) => answer === 'held')).toHaveLength(99)
    expect(heard[0]?.secret).toMatch(/^[0-9a-f]{64}$/)
    expect(heard[0]?.secret).toBe(heard[1]?.secret)
  })

  it('of a newer format are left alone, with a word on which version reads them', async () => {
    const folder = await temporaryFolder()
    const db = open<Uint8Array, Uint8Array>({ path: folder, encoding: 'binary', keyEncoding: 'binary', noSubdir: false })
    db.putSync(new TextEncoder().encode('x402/format'), Uint8Array.of(2))
    await db.close()
    expect(() => embeddedNonceStore({ folder })).toThrow(
      expect.objectContaining({ code: 'store_newer_format', message: expect.stringMatching(/format 2, this version reads 1/) }),
    )
  })

  it('cannot be opened where there is a file, and say so', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), 'no folder')
    expect(() => embeddedNonceStore({ folder: join(folder, 'file', 'below') })).toThrow(
      expect.objectContaining({ code: 'store_unavailable' }),
    )
  })

  it('that were closed are out of reach, by every way of asking', async () => {
    const store = embeddedNonceStore({ folder: await temporaryFolder() })
    await store.close()
    await refusesEverything(store)
  })
})

describe('nonces in Redis', () => {
  let server: RedisServer
  const stores: NonceStore[] = []
  beforeAll(async () => {
    server = await startRedis()
  })
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close()
  })
  afterAll(() => server.stop())

  function openStore(): NonceStore {
    const store = redisNonceStore(server.url)
    stores.push(store)
    return store
  }

  it('of a newer format are left alone, with a word on which version reads them', async () => {
    const redis = new Redis(server.url)
    const claim = claimOf()
    await redis.hset(`sion:x402:nonce:${claim.nonce}`, { format: '2', payment: claim.payment, something: 'new' })
    await expect(openStore().claim(claim)).rejects.toMatchObject({ code: 'store_newer_format' })
    expect(await redis.hgetall(`sion:x402:nonce:${claim.nonce}`)).toEqual({ format: '2', payment: claim.payment, something: 'new' })
    redis.disconnect()
  })

  it('are forgotten by Redis itself, so that nothing piles up', async () => {
    const redis = new Redis(server.url)
    const claim = claimOf()
    const store = openStore()
    await store.claim(claim)
    await store.spend(claim.nonce, claim.holder)
    await store.release(claim.nonce, claim.holder)
    expect(await redis.call('EXPIRETIME', `sion:x402:nonce:${claim.nonce}`)).toBe(claim.keepUntil)
    redis.disconnect()
  })

  it('work again after Redis has forgotten its scripts', async () => {
    const redis = new Redis(server.url)
    const store = openStore()
    await store.claim(claimOf())
    await redis.script('FLUSH')
    const claim = claimOf()
    expect(await store.claim(claim)).toBe('claimed')
    expect(await store.spend(claim.nonce, claim.holder)).toBe(true)
    redis.disconnect()
  })

  it('work over a connection of the app, which stays open when the store is closed', async () => {
    const redis = new Redis(server.url)
    const store = redisNonceStore(redis)
    const claim = claimOf()
    expect(await store.claim(claim)).toBe('claimed')
    await store.close()
    expect(await redis.ping()).toBe('PONG')
    redis.disconnect()
  })

  it('are out of reach within five seconds when Redis hangs, and good again when it goes on', async () => {
    const store = openStore()
    const claim = claimOf()
    expect(await store.claim(claim)).toBe('claimed')
    server.freeze()
    try {
      const asked = performance.now()
      await refusesEverything(store)
      expect(performance.now() - asked).toBeLessThan(5_000)
    } finally {
      server.thaw()
    }
    expect(await store.boundTo(claim.nonce)).toBe(claim.payment)
    expect(await store.spend(claim.nonce, claim.holder)).toBe(true)
  })

  it('that were spent while Redis hung, and then given back unserved, are good again: it hears both late, in order', async () => {
    const store = openStore()
    const claim = claimOf()
    await store.claim(claim)
    server.freeze()
    try {
      await expect(store.spend(claim.nonce, claim.holder)).rejects.toMatchObject({ code: 'store_unavailable' })
      const releasing = store.release(claim.nonce, claim.holder)
      server.thaw()
      await releasing
    } finally {
      server.thaw()
    }
    expect(await store.claim({ ...claim, holder: hex(16) })).toBe('claimed')
  })

  it('are out of reach within five seconds when Redis is gone, and nothing is claimed when it is back', async () => {
    const store = openStore()
    await store.secret()
    await server.kill()
    const claim = claimOf()
    const asked = performance.now()
    await expect(store.claim(claim)).rejects.toMatchObject({ code: 'store_unavailable' })
    await refusesEverything(store)
    expect(performance.now() - asked).toBeLessThan(5_000)
    await server.restart()
    expect(await redisNonceOf(server, claim.nonce)).toBeNull()
    expect(await until(() => store.claim(claim))).toBe('claimed')
  })

  it('are out of reach within five seconds when Redis was never there', async () => {
    const gone = await startRedis()
    await gone.stop()
    const store = redisNonceStore(gone.url)
    stores.push(store)
    const asked = performance.now()
    await refusesEverything(store)
    expect(performance.now() - asked).toBeLessThan(5_000)
  })
})

async function refusesEverything(store: NonceStore): Promise<void> {
  const { nonce, holder } = claimOf()
  const asked = [
    store.claim(claimOf()),
    store.renew(nonce, holder, 1_000),
    store.spend(nonce, holder),
    store.release(nonce, holder),
    store.boundTo(nonce),
    store.secret(),
  ]
  for (const answer of await Promise.allSettled(asked)) {
    expect(answer).toMatchObject({ status: 'rejected', reason: { name: 'SionError', code: 'store_unavailable' } })
  }
}

/** Asks until the connection is there again. */
async function until<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 20_000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (Date.now() > deadline) throw error
    }
  }
}

async function redisNonceOf(server: RedisServer, nonce: string): Promise<string | null> {
  const redis = new Redis(server.url)
  const payment = await redis.hget(`sion:x402:nonce:${nonce}`, 'payment')
  redis.disconnect()
  return payment
}

interface Heard {
  readonly answers: string[]
  readonly secret: string
}

/** Another process with the same folder open, which claims one nonce fifty times at once when told to. */
function peerOn(folder: string, nonce: string, payment: string): { ready: Promise<void>; run(): Promise<Heard> } {
  const script = fileURLToPath(new URL('support/claiming-peer.mjs', import.meta.url))
  const child = fork(script, [folder, nonce, payment], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const ready = new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', (code) => reject(new Error(`the peer ended with ${code}`)))
  })
  return {
    ready,
    run() {
      const heard = new Promise<Heard>((resolve) => child.once('message', (message) => resolve(message as Heard)))
      child.send('go')
      return heard
    },
  }
}
