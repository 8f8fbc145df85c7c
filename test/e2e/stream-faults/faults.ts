import type { Dice, LoadBuyer, LoadCounts } from '../../support/stream-load.js'
import type { FaultsWorld } from './world.js'

/** What is done to the processes while they sell. */
export type FaultKind = 'kill server' | 'restart server' | 'kill redis' | 'freeze redis' | 'pause ledger' | 'kill ledger'

/** One fault as it went, for whoever reads the log. */
export interface FaultReport {
  readonly kind: string
  readonly served: number
  readonly attempts: number
  readonly seconds: number
}

/**
 * Makes faults, each for so many attempts of the load and not for so many seconds, so that on any machine requests meet
 * them. Tells the buyers what is at risk meanwhile:
 *
 * - a server that is killed: what it had in hand. Whether it had sold a step, and whether its answer left, nobody can
 *   tell; sold steps count as served once its lease ends.
 * - Redis that is killed: what any server had in hand. A write may be durable, and its acknowledgement lost: the step is
 *   taken back by the server that wrote it, with its next write, unless it dies first.
 * - Redis that is frozen: the same, and what is sent meanwhile.
 * - the ledger, and a server that is stopped with Ctrl-C: nothing.
 */
export class Faults {
  readonly reports: FaultReport[] = []
  /** What must not have happened to the processes. */
  readonly violations: string[] = []

  constructor(
    readonly world: FaultsWorld,
    readonly buyers: readonly LoadBuyer[],
    readonly counts: LoadCounts,
    readonly dice: Dice,
  ) {}

  async make(kind: FaultKind, attempts: number): Promise<void> {
    const startedAt = performance.now()
    const server = this.dice(this.world.servers.length)
    const before = { served: this.counts.served, attempts: this.counts.attempts }
    await this.#make(kind, server, attempts)
    this.reports.push({
      kind: kind.endsWith('server') ? `${kind} ${server}` : kind,
      served: this.counts.served - before.served,
      attempts: this.counts.attempts - before.attempts,
      seconds: (performance.now() - startedAt) / 1_000,
    })
  }

  async #make(kind: FaultKind, at: number, attempts: number): Promise<void> {
    const { redis, ledgerProcess, servers } = this.world
    const server = servers[at]
    if (server === undefined) throw new Error(`no server ${at}`)
    switch (kind) {
      case 'kill server':
        this.#endanger([at])
        await server.kill()
        this.#safe([at])
        await this.counts.after(attempts)
        return server.start()
      case 'restart server': {
        const { code, stderr } = await server.interrupt()
        if (code !== 0) this.violations.push(`server ${at} ended with ${code} at Ctrl-C: ${stderr.slice(-500)}`)
        return server.start()
      }
      case 'kill redis':
        if (redis === undefined) throw new Error('this world has no Redis')
        this.#endanger(this.#all)
        await redis.kill()
        this.#safe(this.#all)
        await this.counts.after(attempts)
        return redis.restart()
      case 'freeze redis':
        if (redis === undefined) throw new Error('this world has no Redis')
        this.#endanger(this.#all)
        redis.freeze()
        await this.counts.after(attempts)
        redis.thaw()
        return this.#safe(this.#all)
      case 'pause ledger':
        ledgerProcess.freeze()
        await this.counts.after(attempts)
        return ledgerProcess.thaw()
      case 'kill ledger':
        await ledgerProcess.kill()
        await this.counts.after(attempts)
        return ledgerProcess.start()
    }
  }

  get #all(): number[] {
    return [...this.world.servers.keys()]
  }

  #endanger(servers: readonly number[]): void {
    for (const buyer of this.buyers) for (const server of servers) buyer.endanger(server)
  }

  #safe(servers: readonly number[]): void {
    for (const buyer of this.buyers) for (const server of servers) buyer.safe(server)
  }
}
