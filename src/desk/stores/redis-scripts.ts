import { Command, Redis, type Cluster } from 'ioredis'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A connection to one Redis or to a Redis Cluster. */
export type RedisConnection = Redis | Cluster

type Argument = string | Buffer | number

/** One Lua file, run by its digest; sent whole only to a Redis that does not have it yet. */
export class Script {
  readonly #source: string
  readonly #digest: string

  /** `name` of a file in `lua/`, beside this one. */
  constructor(name: string) {
    this.#source = readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8')
    this.#digest = createHash('sha1').update(this.#source).digest('hex')
  }

  /** The script's answer, bulk strings as Buffers. Rejects with what ioredis rejects with. */
  async run(redis: RedisConnection, keys: readonly string[], ...args: readonly Argument[]): Promise<unknown> {
    try {
      return await send(redis, 'evalsha', [this.#digest, keys.length, ...keys, ...args])
    } catch (error) {
      // After a restart, a failover or SCRIPT FLUSH. Nothing ran.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error
      return send(redis, 'eval', [this.#source, keys.length, ...keys, ...args])
    }
  }
}

/** Below ioredis's methods for single commands: half their CPU, which is the largest part of a payment over Redis. */
function send(redis: RedisConnection, name: string, args: Argument[]): Promise<unknown> {
  const command = new Command(name, args, { replyEncoding: null })
  if (redis instanceof Redis && redis.status === 'ready') gather(redis.stream)
  void redis.sendCommand(command)
  return command.promise
}

const corked = new WeakSet<Redis['stream']>()

/** What is sent in one turn of the event loop goes out in one write: the system call would cost more than the command. */
function gather(stream: Redis['stream']): void {
  if (corked.has(stream)) return
  corked.add(stream)
  stream.cork()
  process.nextTick(() => {
    corked.delete(stream)
    stream.uncork()
  })
}
