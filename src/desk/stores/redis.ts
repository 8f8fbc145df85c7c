import { Cluster, Redis } from 'ioredis'
import { InputError, isId, SionError, type Id } from '../../codec/index.js'
import {
  newerFormat,
  storeUnavailable,
  TAB_FORMAT,
  tabPrefix,
  type DeskStore,
  type Due,
  type StoredTab,
  type Swap,
  type Swapped,
} from '../store.js'
import { Script, type RedisConnection } from './redis-scripts.js'

export interface RedisStoreOptions {
  /** One Redis: `redis://` or `rediss://`. */
  readonly url?: string
  /** … or some nodes of a Redis Cluster, likewise. */
  readonly cluster?: readonly string[]
  /** What all keys begin with. Default `sion:desk`. */
  readonly prefix?: string
  /** How long to wait for the first connection, and for an answer on any. Default 5000. */
  readonly timeoutMs?: number
}

/**
 * Tabs in Redis: any number of servers, on any number of machines, that sell for one payee. Redis must persist every
 * write (`appendonly yes`, `appendfsync always`) and never evict (docs/streams.md says how to run it).
 *
 * A tab and its place in the queue change in one script, so their keys share a hash slot. 64 slots, picked by the stream's
 * id, hold them all: one each would leave the queue in as many keys as there are streams.
 *
 * Connects by itself, also again. While there is no connection every call rejects at once with `store_unavailable`.
 * @throws InputError for an option that makes no sense.
 */
export function redisStore(options: RedisStoreOptions): DeskStore {
  const { url, cluster, prefix = 'sion:desk', timeoutMs = 5_000 } = options
  if ((url === undefined) === (cluster === undefined)) throw new InputError('url', 'expected either url or cluster')
  if (/[{}]/.test(prefix)) throw new InputError('prefix', 'braces are for the hash tag')
  return new RedisStore(connect(url, cluster, timeoutMs), prefix, timeoutMs)
}

function connect(url: string | undefined, cluster: readonly string[] | undefined, timeoutMs: number): RedisConnection {
  // The desk answers 503 and the buyer comes again: nothing waits here, and nothing is sent twice behind its back.
  const common = { enableOfflineQueue: false }
  const each = {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    retryStrategy: (times: number) => Math.min(times * 50, 1_000),
  }
  if (url !== undefined) return new Redis(parseUrl(url).href, { ...common, ...each })
  const nodes = (cluster ?? []).map((node) => parseUrl(node))
  const first = nodes[0]
  if (first === undefined) throw new InputError('cluster', 'expected at least one node')
  const { username, password, protocol } = first
  return new Cluster(
    nodes.map(({ hostname, port }) => ({ host: hostname, port: Number(port || 6379) })),
    {
      ...common,
      clusterRetryStrategy: (times) => Math.min(times * 50, 1_000),
      redisOptions: {
        ...each,
        ...(username === '' ? {} : { username: decodeURIComponent(username) }),
        ...(password === '' ? {} : { password: decodeURIComponent(password) }),
        ...(protocol === 'rediss:' ? { tls: {} } : {}),
      },
    },
  )
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'redis:' && url?.protocol !== 'rediss:') {
    throw new InputError('url', 'expected a URL such as redis://127.0.0.1:6379')
  }
  return url
}

const scripts = {
  swap: new Script('swap'),
  swapAndQueue: new Script('swap-and-queue'),
  remove: new Script('remove'),
  due: new Script('due'),
  lease: new Script('lease'),
  release: new Script('release'),
}

const TAGS = Array.from({ length: 64 }, (_, tag) => tag.toString(16).padStart(2, '0'))
const SWAPPED: Swapped = { swapped: true }

class RedisStore implements DeskStore {
  #checked = false
  #checking: Promise<void> | undefined

  constructor(
    readonly redis: RedisConnection,
    readonly prefix: string,
    readonly timeoutMs: number,
  ) {
    // Without a listener ioredis prints each failed connection; here every call that it fails says so.
    redis.on('error', () => {})
  }

  load(stream: Id): Promise<StoredTab | undefined> {
    return this.#attempt(async () => {
      const [tab, jumps] = await this.redis.hmgetBuffer(this.#tab(stream), 't', 'j')
      return tab ? { tab, jumps: jumps ?? new Uint8Array(0) } : undefined
    })
  }

  swap(change: Swap): Promise<Swapped> {
    return this.#attempt(async () => {
      const { stream, jumps, due } = change
      const expected = change.version === 0 ? '' : bufferOf(tabPrefix(change.version))
      const tab = bufferOf(change.tab)
      const answer = await (jumps === undefined && due === undefined && change.version !== 0
        ? scripts.swap.run(this.redis, [this.#tab(stream)], expected, tab)
        : scripts.swapAndQueue.run(
            this.redis,
            this.#keys(stream),
            expected,
            tab,
            jumps === undefined ? '' : bufferOf(jumps),
            stream,
            due === undefined ? '' : due === 'never' ? 'never' : due.at,
            due === undefined || due === 'never' ? '' : due.pulse,
          ))
      return answer === 1 ? SWAPPED : { swapped: false, current: storedTab(answer) }
    })
  }

  remove(stream: Id, version: number): Promise<boolean> {
    return this.#attempt(
      async () => (await scripts.remove.run(this.redis, this.#keys(stream), bufferOf(tabPrefix(version)), stream)) === 1,
    )
  }

  due(now: Due, limit: number): Promise<Id[]> {
    return this.#attempt(async () => {
      const answers = await Promise.all(
        TAGS.map((tag) =>
          scripts.due.run(this.redis, [this.#key(tag, 'due'), this.#key(tag, 'last-pulse')], now.at, now.pulse, limit),
        ),
      )
      return [...new Set(answers.flatMap(idsOf))].slice(0, limit)
    })
  }

  streams(): Promise<Id[]> {
    return this.#attempt(async () => {
      const members = await Promise.all(TAGS.map((tag) => this.redis.smembers(this.#key(tag, 'streams'))))
      return members.flat()
    })
  }

  lease(stream: Id, owner: string, { milliseconds }: { now: number; milliseconds: number }): Promise<boolean> {
    return this.#attempt(async () => (await scripts.lease.run(this.redis, [this.#lease(stream)], owner, milliseconds)) === 1)
  }

  release(stream: Id, owner: string): Promise<void> {
    return this.#attempt(async () => {
      await scripts.release.run(this.redis, [this.#lease(stream)], owner)
    })
  }

  close(): Promise<void> {
    this.redis.disconnect()
    return Promise.resolve()
  }

  #key(tag: string, name: string): string {
    return `${this.prefix}:{${tag}}:${name}`
  }

  #tab(stream: Id): string {
    return this.#key(tagOf(stream), `tab:${stream}`)
  }

  #lease(stream: Id): string {
    return this.#key(tagOf(stream), `lease:${stream}`)
  }

  #keys(stream: Id): string[] {
    const tag = tagOf(stream)
    return [this.#tab(stream), this.#key(tag, 'due'), this.#key(tag, 'last-pulse'), this.#key(tag, 'streams')]
  }

  /** Whatever goes wrong with Redis (gone, loading, full, failing over) means the same to the desk. */
  async #attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      if (!this.#checked) await (this.#checking ??= this.#check())
      return await operation()
    } catch (error) {
      throw error instanceof SionError ? error : storeUnavailable(error)
    }
  }

  /** Before the first use: a connection, and that no newer program wrote here. */
  async #check(): Promise<void> {
    try {
      await this.#connected()
      const key = `${this.prefix}:format`
      await this.redis.set(key, TAB_FORMAT, 'NX')
      const format = Number(await this.redis.get(key))
      if (!(format <= TAB_FORMAT)) throw newerFormat(format)
      this.#checked = true
    } finally {
      this.#checking = undefined
    }
  }

  #connected(): Promise<void> {
    if (this.redis.status === 'ready') return Promise.resolve()
    return new Promise((resolve, reject) => {
      const onReady = (): void => finish()
      const finish = (error?: Error): void => {
        clearTimeout(timer)
        this.redis.off('ready', onReady)
        this.redis.off('end', onEnd)
        if (error === undefined) resolve()
        else reject(error)
      }
      const onEnd = (): void => finish(new Error('the connection was closed'))
      const timer = setTimeout(() => finish(new Error(`no connection within ${this.timeoutMs} ms`)), this.timeoutMs)
      this.redis.on('ready', onReady)
      this.redis.on('end', onEnd)
    })
  }
}

function tagOf(stream: Id): string {
  return TAGS[Number.parseInt(stream.slice(0, 2), 16) & 63]!
}

function bufferOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function storedTab(answer: unknown): StoredTab | undefined {
  if (!Array.isArray(answer)) throw new Error('Redis answered a swap with something else')
  const [tab, jumps]: unknown[] = answer
  if (!(tab instanceof Uint8Array) || !(jumps instanceof Uint8Array)) throw new Error('Redis answered a swap with something else')
  return tab.length === 0 ? undefined : { tab, jumps }
}

function idsOf(answer: unknown): Id[] {
  return Array.isArray(answer) ? answer.map(String).filter(isId) : []
}
