import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { open } from 'lmdb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { tabPrefix, versionOf, type DeskStore, type StoredTab } from '../../src/desk/store.js'
import { embeddedStore } from '../../src/desk/stores/embedded.js'
import { memoryStore } from '../../src/desk/stores/memory.js'
import { redisStore } from '../../src/desk/stores/redis.js'
import { startRedis, startRedisCluster, type RedisServer } from '../support/redis.js'

const newId = (): string => randomBytes(32).toString('hex')

function tabOf(version: number, text = ''): Uint8Array {
  return new Uint8Array(Buffer.concat([tabPrefix(version), Buffer.from(text)]))
}

function plain(stored: StoredTab | undefined): StoredTab | undefined {
  return stored && { tab: new Uint8Array(stored.tab), jumps: new Uint8Array(stored.jumps) }
}

interface Place {
  /** Another look at the same data, as another process would have. */
  open(): DeskStore
  end(): Promise<void>
}

const places: Record<string, () => Promise<Place>> = {
  async memory() {
    const store = memoryStore()
    return { open: () => store, end: () => Promise.resolve() }
  },
  async embedded() {
    const folder = await mkdtemp(join(tmpdir(), 'desk.store-'))
    const store = embeddedStore(folder)
    return {
      open: () => store,
      async end() {
        await store.close()
        await rm(folder, { recursive: true })
      },
    }
  },
  async Redis() {
    const server = await startRedis()
    const stores: DeskStore[] = []
    return {
      open() {
        const store = redisStore({ url: server.url })
        stores.push(store)
        return store
      },
      async end() {
        for (const store of stores) await store.close()
        await server.stop()
      },
    }
  },
  async 'a Redis Cluster of three'() {
    const servers = await startRedisCluster()
    const stores: DeskStore[] = []
    return {
      open() {
        const store = redisStore({ cluster: servers.urls })
        stores.push(store)
        return store
      },
      async end() {
        for (const store of stores) await store.close()
        await servers.stop()
      },
    }
  },
}

for (const [name, make] of Object.entries(places)) {
  describe(`the desk's store in ${name}`, () => {
    let place: Place
    let store: DeskStore
    let other: DeskStore
    beforeAll(async () => {
      place = await make()
      store = place.open()
      other = place.open()
    })
    afterAll(() => place.end())

    it('has nothing on a stream nobody paid from', async () => {
      expect(await store.load(newId())).toBeUndefined()
      expect(await store.remove(newId(), 1)).toBe(false)
    })

    it('keeps the bytes of a tab and its paths, whatever bytes they are', async () => {
      const stream = newId()
      const tab = new Uint8Array(Buffer.concat([tabPrefix(1), randomBytes(300), Buffer.from([0, 13, 10, 255])]))
      const jumps = new Uint8Array(randomBytes(1_000))
      expect(await store.swap({ stream, version: 0, tab, jumps, due: { at: 5, pulse: 6 } })).toEqual({ swapped: true })
      expect(plain(await other.load(stream))).toEqual({ tab, jumps })
    })

    it('replaces a tab only for who saw the present one, and shows it to who did not', async () => {
      const stream = newId()
      expect(await store.swap({ stream, version: 0, tab: tabOf(1, 'a') })).toEqual({ swapped: true })
      const late = await other.swap({ stream, version: 0, tab: tabOf(1, 'b') })
      expect(late.swapped).toBe(false)
      expect(late.swapped ? undefined : plain(late.current)).toEqual({ tab: tabOf(1, 'a'), jumps: new Uint8Array(0) })
      expect(await other.swap({ stream, version: 1, tab: tabOf(2, 'b'), jumps: new Uint8Array([7]) })).toEqual({ swapped: true })
      const stale = await store.swap({ stream, version: 1, tab: tabOf(2, 'c') })
      expect(stale.swapped ? undefined : plain(stale.current)).toEqual({ tab: tabOf(2, 'b'), jumps: new Uint8Array([7]) })
      const absent = await store.swap({ stream: newId(), version: 3, tab: tabOf(4) })
      expect(absent).toEqual({ swapped: false, current: undefined })
    })

    it('leaves paths alone that a swap does not mention', async () => {
      const stream = newId()
      await store.swap({ stream, version: 0, tab: tabOf(1), jumps: new Uint8Array([1, 2, 3]) })
      await store.swap({ stream, version: 1, tab: tabOf(2) })
      expect(plain(await store.load(stream))?.jumps).toEqual(new Uint8Array([1, 2, 3]))
    })

    it('lets exactly one of many swaps at once win', async () => {
      const stream = newId()
      for (let version = 0; version < 20; version++) {
        const swaps = Array.from({ length: 16 }, (_, at) =>
          (at % 2 === 0 ? store : other).swap({ stream, version, tab: tabOf(version + 1, `${at}`) }),
        )
        expect((await Promise.all(swaps)).filter(({ swapped }) => swapped)).toHaveLength(1)
      }
    })

    it('keeps versions apart beyond 32 bits', async () => {
      const stream = newId()
      const version = 2 ** 40 + 1
      await store.swap({ stream, version: 0, tab: tabOf(version) })
      const stored = await store.load(stream)
      expect(stored && versionOf(stored.tab)).toBe(version)
      expect((await store.swap({ stream, version: version - 2 ** 32, tab: tabOf(5) })).swapped).toBe(false)
      expect((await store.swap({ stream, version, tab: tabOf(version + 1) })).swapped).toBe(true)
    })

    it('names the streams that are due by time or by Pulse, at equality too, up to the limit', async () => {
      for (const stream of await store.due({ at: Number.MAX_SAFE_INTEGER, pulse: 0 }, 1_000)) {
        const stored = await store.load(stream)
        if (stored) await store.remove(stream, versionOf(stored.tab))
      }
      const [early, late, ending] = [newId(), newId(), newId()]
      await store.swap({ stream: early, version: 0, tab: tabOf(1), due: { at: 1_000, pulse: 900 } })
      await store.swap({ stream: late, version: 0, tab: tabOf(1), due: { at: 2_000, pulse: 901 } })
      await store.swap({ stream: ending, version: 0, tab: tabOf(1), due: { at: 9_000_000_000_000, pulse: 50 } })
      const due = async (at: number, pulse: number) => new Set(await other.due({ at, pulse }, 100))
      expect(await due(999, 49)).toEqual(new Set())
      expect(await due(1_000, 49)).toEqual(new Set([early]))
      expect(await due(1_999, 50)).toEqual(new Set([early, ending]))
      expect(await due(2_000, 50)).toEqual(new Set([early, late, ending]))
      expect(await other.due({ at: 2_000, pulse: 50 }, 2)).toHaveLength(2)
      await store.swap({ stream: early, version: 1, tab: tabOf(2), due: 'never' })
      await store.swap({ stream: late, version: 1, tab: tabOf(2) })
      expect(await due(2_000, 49)).toEqual(new Set([late]))
      await store.swap({ stream: late, version: 2, tab: tabOf(3), due: { at: 3_000, pulse: 901 } })
      expect(await due(2_999, 49)).toEqual(new Set())
      expect(await due(3_000, 49)).toEqual(new Set([late]))
    })

    it('does not queue what a lost swap wanted queued', async () => {
      const stream = newId()
      await store.swap({ stream, version: 0, tab: tabOf(1) })
      await store.swap({ stream, version: 7, tab: tabOf(8), due: { at: 1, pulse: 1 } })
      expect(await store.due({ at: 1, pulse: 1 }, 1_000)).not.toContain(stream)
    })

    it('forgets a stream with all that hangs on it, for who saw its tab', async () => {
      const stream = newId()
      await store.swap({ stream, version: 0, tab: tabOf(1), jumps: new Uint8Array([1]), due: { at: 1, pulse: 1 } })
      expect(await store.streams()).toContain(stream)
      expect(await store.remove(stream, 2)).toBe(false)
      expect(await store.remove(stream, 1)).toBe(true)
      expect(await store.load(stream)).toBeUndefined()
      expect(await store.due({ at: 1, pulse: 1 }, 1_000)).not.toContain(stream)
      expect(await store.streams()).not.toContain(stream)
      expect((await store.swap({ stream, version: 0, tab: tabOf(1) })).swapped).toBe(true)
      expect(plain(await store.load(stream))?.jumps).toEqual(new Uint8Array(0))
    })

    it('gives a lease to one owner, renews it for that one, and ends it only for that one', async () => {
      const stream = newId()
      const lease = { now: 1_000, milliseconds: 60_000 }
      expect(await store.lease(stream, 'one', lease)).toBe(true)
      expect(await other.lease(stream, 'two', lease)).toBe(false)
      expect(await store.lease(stream, 'one', lease)).toBe(true)
      await other.release(stream, 'two')
      expect(await other.lease(stream, 'two', lease)).toBe(false)
      await store.release(stream, 'one')
      expect(await other.lease(stream, 'two', lease)).toBe(true)
    })
  })
}

describe('the embedded store', () => {
  it('comes back with everything from its folder', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'desk-store-'))
    const stream = newId()
    const before = embeddedStore(folder)
    await before.swap({ stream, version: 0, tab: tabOf(1, 'kept'), jumps: new Uint8Array([9]), due: { at: 3, pulse: 4 } })
    await before.close()
    const after = embeddedStore(folder)
    expect(plain(await after.load(stream))).toEqual({ tab: tabOf(1, 'kept'), jumps: new Uint8Array([9]) })
    expect(await after.due({ at: 3, pulse: 0 }, 9)).toEqual([stream])
    await after.close()
    await rm(folder, { recursive: true })
  })

  it('lets a lease run out', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'desk-store-'))
    const store = embeddedStore(folder)
    const stream = newId()
    expect(await store.lease(stream, 'one', { now: 0, milliseconds: 100 })).toBe(true)
    expect(await store.lease(stream, 'two', { now: 99, milliseconds: 100 })).toBe(false)
    expect(await store.lease(stream, 'two', { now: 100, milliseconds: 100 })).toBe(true)
    await store.close()
    await rm(folder, { recursive: true })
  })

  it('refuses a folder that a newer program wrote, and one it cannot use', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'desk-store-'))
    const newer = open<Uint8Array, Uint8Array>({ path: folder, noSubdir: false, encoding: 'binary', keyEncoding: 'binary' })
    await newer.put(new TextEncoder().encode('format'), Uint8Array.of(2))
    await newer.close()
    expect(() => embeddedStore(folder)).toThrow(expect.objectContaining({ code: 'store_newer_format' }))
    await rm(folder, { recursive: true })
    expect(() => embeddedStore('/dev/null/desk')).toThrow(expect.objectContaining({ code: 'store_unavailable' }))
  })

  it('is out of reach once closed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'desk-store-'))
    const store = embeddedStore(folder)
    await store.close()
    await expect(store.load(newId())).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(store.swap({ stream: newId(), version: 0, tab: tabOf(1) })).rejects.toMatchObject({ code: 'store_unavailable' })
    await rm(folder, { recursive: true })
  })
})

describe('the Redis store', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis(['--appendonly', 'yes', '--appendfsync', 'always'])
  })
  afterAll(() => server.stop())

  it('recovers from a Redis that forgot its scripts', async () => {
    const store = redisStore({ url: server.url })
    const client = new Redis(server.url)
    const stream = newId()
    await store.swap({ stream, version: 0, tab: tabOf(1) })
    await client.script('FLUSH')
    expect(await store.swap({ stream, version: 1, tab: tabOf(2) })).toEqual({ swapped: true })
    client.disconnect()
    await store.close()
  })

  it('takes the same swap twice for one: what a broken connection repeats', async () => {
    const store = redisStore({ url: server.url })
    for (const due of [undefined, { at: 1, pulse: 1 }]) {
      const stream = newId()
      await store.swap({ stream, version: 0, tab: tabOf(1) })
      const swap = { stream, version: 1, tab: tabOf(2, 'mine'), ...(due ? { due } : {}) }
      expect(await store.swap(swap)).toEqual({ swapped: true })
      expect(await store.swap(swap)).toEqual({ swapped: true })
    }
    await store.close()
  })

  it('rejects at once while Redis is away, and has everything when it is back', async () => {
    const store = redisStore({ url: server.url, timeoutMs: 2_000 })
    const stream = newId()
    await store.swap({ stream, version: 0, tab: tabOf(1, 'acknowledged') })
    await server.kill()
    await expect(store.swap({ stream, version: 1, tab: tabOf(2) })).rejects.toMatchObject({ code: 'store_unavailable' })
    await expect(store.load(stream)).rejects.toMatchObject({ code: 'store_unavailable' })
    await server.restart()
    let stored: StoredTab | undefined
    while (stored === undefined) {
      // Still reconnecting, which takes it some tens of milliseconds.
      stored = await store.load(stream).catch(() => undefined)
      await new Promise((resolve) => {
        setTimeout(resolve, 10)
      })
    }
    expect(plain(stored)?.tab).toEqual(tabOf(1, 'acknowledged'))
    await store.close()
  })

  it('rejects when Redis stops answering', async () => {
    const store = redisStore({ url: server.url, timeoutMs: 300 })
    await store.load(newId())
    server.freeze()
    await expect(store.load(newId())).rejects.toMatchObject({ code: 'store_unavailable' })
    server.thaw()
    await store.close()
  })

  it('says so when there is no Redis, and recovers when there is', async () => {
    const elsewhere = await startRedis()
    await elsewhere.kill()
    const store = redisStore({ url: elsewhere.url, timeoutMs: 300 })
    await expect(store.load(newId())).rejects.toMatchObject({ code: 'store_unavailable' })
    await elsewhere.restart()
    let recovered = false
    while (!recovered) {
      recovered = await store.load(newId()).then(
        () => true,
        () => false,
      )
    }
    await store.close()
    await elsewhere.stop()
  })

  it('refuses a Redis that a newer program wrote to', async () => {
    const client = new Redis(server.url)
    await client.set('newer:format', 2)
    const store = redisStore({ url: server.url, prefix: 'newer' })
    await expect(store.load(newId())).rejects.toMatchObject({ code: 'store_newer_format' })
    client.disconnect()
    await store.close()
  })

  it('does not take a hash tag in its prefix, nor anything but a Redis URL', () => {
    expect(() => redisStore({ url: server.url, prefix: 'a{b}' })).toThrow('prefix')
    expect(() => redisStore({ url: 'http://127.0.0.1' })).toThrow('redis://')
    expect(() => redisStore({})).toThrow('either')
    expect(() => redisStore({ url: server.url, cluster: [server.url] })).toThrow('either')
    expect(() => redisStore({ cluster: [] })).toThrow('node')
  })
})
