import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Id } from '../../../src/codec/index.js'
import { devnetWallet, type Ledger } from '../../../src/sdk/index.js'
import { Cli, type RunningCli } from '../../support/cli.js'
import { fund, ledgerAt } from '../../support/paid-stream.js'
import { startRedis, type RedisServer } from '../../support/redis.js'

/** Real processes that can be killed: a ledger in a folder, a store, and servers that sell from it. */

const STARTS_WITHIN_MS = 60_000

/** `sion devnet --data`, at one address for as long as the test lasts. */
export class LedgerProcess {
  #address = '127.0.0.1:0'
  #running: RunningCli | undefined
  url = ''
  chain: Id = ''

  constructor(
    readonly cli: Cli,
    readonly folder: string,
  ) {}

  async start(): Promise<void> {
    const running = this.cli.start('devnet', '--data', this.folder, '--validators', '1', '--listen', this.#address)
    this.#running = running
    const [, chain = '', url = ''] = await running.until(/^ {2}chain +([0-9a-f]{64})\n[^]*^ {2}API +(\S+)$/m)
    this.#address = new URL(url).host
    this.url = url
    this.chain = chain
  }

  freeze(): void {
    this.#running?.kill('SIGSTOP')
  }

  thaw(): void {
    this.#running?.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.#running?.kill('SIGKILL')
    await this.#running?.result
  }

  async stop(): Promise<void> {
    this.thaw()
    await this.kill()
  }
}

/** `sion x402 serve bob --streams`, started again by whoever looks after it, as a supervisor would. */
export class ServerProcess {
  #address = '127.0.0.1:0'
  #running: RunningCli | undefined
  #wanted = false
  url = ''

  constructor(
    readonly cli: Cli,
    readonly args: readonly string[],
  ) {}

  /** Until it sells, however often it must be started for that: its ledger or its store may be away. */
  async start(): Promise<void> {
    this.#wanted = true
    const giveUpAt = performance.now() + STARTS_WITHIN_MS
    for (;;) {
      const running = this.cli.start('x402', 'serve', 'bob', '--streams', '--listen', this.#address, ...this.args)
      this.#running = running
      const line = await running.until(/^selling (\S+) at /m).catch((error: unknown) => {
        if (!this.#wanted || performance.now() > giveUpAt) throw error
      })
      if (line === undefined) continue
      this.url = line[1] ?? ''
      this.#address = new URL(this.url).host
      return
    }
  }

  async kill(): Promise<void> {
    this.#wanted = false
    this.#running?.kill('SIGKILL')
    await this.#running?.result
  }

  /** Ctrl-C, and what it said until its end. */
  async interrupt(): Promise<{ code: number | null; stderr: string }> {
    this.#wanted = false
    const running = this.#running
    if (running === undefined) throw new Error('it was never started')
    running.kill('SIGINT')
    const { code, stderr } = await running.result
    return { code, stderr }
  }
}

/** Everything of one run of the test. `end` ends it, also after a start that failed. */
export class FaultsWorld {
  readonly servers: ServerProcess[] = []
  redis: RedisServer | undefined

  private constructor(
    readonly cli: Cli,
    readonly folder: string,
    readonly ledgerProcess: LedgerProcess,
    readonly ledger: Ledger,
    readonly storeFlags: readonly string[],
  ) {}

  /** Two servers over one Redis that flushes every write, or one with a folder of its own. */
  static async start(store: 'redis' | 'embedded', serveFlags: readonly string[]): Promise<FaultsWorld> {
    const folder = await mkdtemp(join(tmpdir(), 'sion-faults-'))
    const bare = await Cli.create()
    const ledgerProcess = new LedgerProcess(bare, join(folder, 'chain'))
    const redis = store === 'redis' ? await startRedis(['--appendonly', 'yes', '--appendfsync', 'always']) : undefined
    const storeFlags = redis === undefined ? ['--data', join(folder, 'desk')] : ['--redis', redis.url]
    try {
      await ledgerProcess.start()
      const cli = bare.with({ SION_NODE: ledgerProcess.url, SION_CHAIN: ledgerProcess.chain })
      const ledger = ledgerAt(ledgerProcess.url, ledgerProcess.chain)
      await fund(ledger, devnetWallet('bob').account, 1_000_000_000n)
      const world = new FaultsWorld(cli, folder, ledgerProcess, ledger, storeFlags)
      world.redis = redis
      for (let at = 0; at < (redis === undefined ? 1 : 2); at++) world.servers.push(new ServerProcess(cli, [...storeFlags, ...serveFlags]))
      await Promise.all(world.servers.map((server) => server.start()))
      return world
    } catch (error) {
      await ledgerProcess.stop()
      await redis?.stop()
      throw error
    }
  }

  /** `sion desk …` of the payee. */
  desk(...args: string[]): ReturnType<Cli['run']> {
    return this.cli.run('desk', ...args, ...this.storeFlags)
  }

  async end(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()))
    await this.ledgerProcess.stop()
    await this.redis?.stop()
    await this.cli.remove()
    await rm(this.folder, { recursive: true, force: true })
  }
}
