import { messageOf, SionError, type Id } from '../codec/index.js'
import { encodeBody } from '../ledger/index.js'
import { encodeCertificate, encodeHeader, type Certificate } from '../pulse/index.js'
import { nextHeader, stateView, tipOf, type Chain } from './chain.js'
import type { Committee } from './committee.js'
import type { Head } from './head.js'
import type { Logger } from './logger.js'
import type { Mempool } from './mempool.js'
import { decodeProposal, proposalOf, type Proposal } from './proposal.js'
import { commitmentsOf, executePulse, type PulseCommitments, type PulseEffects } from './pulse-execution.js'
import { Signal } from './signal.js'
import type { Store } from './store.js'
import type { Waiters } from './waiters.js'

/** A Pulse holds at most so many transfers, or less of what weighs more: executing them holds up the event loop. */
const MAX_WEIGHT = 1_000
/** After an error, such as a full disk, in milliseconds. */
const TRY_AGAIN_MS = 1_000

export interface Pace {
  /** An idle chain makes a Pulse this often, in milliseconds. */
  readonly idleTickMs: number
  /** The first pending transaction waits this long for others, in milliseconds. */
  readonly batchWindowMs: number
  /** Milliseconds since the Unix epoch. It may stand still or go back: a Pulse's time grows in any case. */
  readonly clock: () => number
}

/** A proposal with all that becomes of it. */
interface Draft {
  readonly proposal: Proposal
  readonly effects: PulseEffects
  readonly commitments: PulseCommitments
}

/**
 * Makes one Pulse after another: collects, executes, has it certified, commits. While one is being signed the next one's
 * transactions are collected.
 *
 *     waiting ── pending for batchWindowMs, or idle for idleTickMs ──▶ drafted (in memory)
 *     drafted ── proposal and votes on the disk ──▶ proposed: this number will be this header, crash or not
 *     proposed ── votes of a quorum, everything in one transaction ──▶ certified: visible
 */
export class Producer {
  readonly #wake = new Signal()
  readonly #stop = new AbortController()
  #paused = false
  /** A node makes a Pulse at once: until it has, a light client that wants a fresh header has none. */
  #lastAt = -Infinity
  #running: Promise<void> | undefined
  readonly #certified = new Signal()

  constructor(
    private readonly chain: Chain,
    private readonly head: Head,
    private readonly store: Store,
    private readonly mempool: Mempool,
    private readonly committee: Committee,
    private readonly waiters: Waiters,
    private readonly pace: Pace,
    private readonly logger: Logger,
  ) {}

  start(): void {
    this.#running ??= this.#run()
  }

  /** Leaves a Pulse that is being certified where it is: on the disk, to be certified at the next start. */
  async stop(): Promise<void> {
    this.#stop.abort(new SionError('stopped', 'the node is stopped'))
    this.#wake.fire()
    this.#certified.fire()
    await this.#running
  }

  set paused(paused: boolean) {
    this.#paused = paused
    this.#wake.fire()
  }

  /** Something is pending, or validators came or went. */
  look(): void {
    this.#wake.fire()
  }

  /** Until this node has certified a Pulse, or is stopped. */
  async firstPulse(): Promise<void> {
    if (this.#lastAt === -Infinity) await this.#certified.wait()
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      try {
        const restored = this.store.proposal()
        if (restored === undefined) await this.#due()
        if (signal.aborted) return
        await this.#make(restored === undefined ? this.#draft() : this.#redraft(decodeProposal(restored)))
      } catch (error) {
        if (signal.aborted) return
        this.logger.error(`Pulse ${this.head.certified.number + 1} is not made: ${messageOf(error)}`)
        await this.#wake.wait(TRY_AGAIN_MS)
      }
    }
  }

  async #due(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      if (this.#paused || !this.committee.active) {
        await this.#wake.wait()
        continue
      }
      const { oldest } = this.mempool
      const due = oldest === undefined ? this.#lastAt + this.pace.idleTickMs : oldest + this.pace.batchWindowMs
      const left = due - performance.now()
      if (left <= 0) return
      await this.#wake.wait(left)
    }
  }

  #draft(): Draft {
    const parent = this.head.certified
    const effects = this.#execute(this.mempool.first(MAX_WEIGHT))
    const commitments = commitmentsOf(parent.tree, effects)
    const now = Math.floor(this.pace.clock())
    const time = Number.isSafeInteger(now) ? Math.max(parent.time + 1, now) : parent.time + 1
    const header = nextHeader(this.chain, parent, { time, round: parent.round + 1 }, commitments)
    return { proposal: proposalOf(header, effects.transactions), effects, commitments }
  }

  /** What was proposed before a crash, executed again. */
  #redraft(proposal: Proposal): Draft {
    const parent = this.head.certified
    const effects = this.#execute(proposal.transactions)
    const commitments = commitmentsOf(parent.tree, effects)
    const header = nextHeader(this.chain, parent, proposal.header, commitments)
    if (proposalOf(header, effects.transactions).headerHash !== proposal.headerHash) {
      throw new SionError('state_damaged', `what was proposed as Pulse ${proposal.header.number} does not come out the same again`)
    }
    return { proposal, effects, commitments }
  }

  #execute(transactions: Proposal['transactions']): PulseEffects {
    const { certified } = this.head
    const pulse = certified.number + 1
    const context = { chain: this.chain.id, pulse, parameters: this.chain.parameters }
    const work = { expired: this.store.expiredIn(pulse), transactions }
    return executePulse(stateView(certified.tree, this.store), work, context)
  }

  async #make(draft: Draft): Promise<void> {
    const certificate = await this.committee.certify(draft.proposal, this.#stop.signal, () => this.#proposed(draft))
    this.#commit(draft, certificate)
  }

  #proposed({ proposal, effects }: Draft): void {
    this.head.propose(proposal.header.number, effects.writes)
    this.mempool.propose(effects.receipts.map(({ digest }) => digest))
    for (const { digest, refusal } of effects.inadmissible) {
      if (!this.mempool.drop(digest, refusal.reason)) continue
      this.logger.info(`transaction ${digest.slice(0, 8)} is dropped: ${refusal.reason}`)
      this.waiters.wake(digest)
    }
  }

  /** Disk and memory change in one go: nobody sees one without the other. */
  #commit({ proposal, effects, commitments }: Draft, certificate: Certificate): void {
    const { header } = proposal
    const transactions = effects.receipts.map(({ digest }, index) => ({
      digest,
      body: encodeBody(itemAt(effects.transactions, index).body),
      receipt: itemAt(commitments.receipts, index),
    }))
    this.store.commit({
      number: header.number,
      header: encodeHeader(header),
      certificate: encodeCertificate(certificate),
      transactions,
      objects: commitments.objects,
      expiring: expiringIn(effects),
    })
    const tip = tipOf(header, commitments.tree)
    this.head.certify(tip, effects.writes)
    this.committee.follow(tip)
    this.mempool.certified()
    this.#lastAt = performance.now()
    this.#certified.fire()
    for (const { digest } of transactions) this.waiters.wake(digest)
    if (effects.receipts.some(({ events }) => events.length > 0)) this.waiters.wake('events')
    if (transactions.length > 0) this.logger.info(`Pulse ${header.number}: ${transactions.length} executed`)
  }
}

function expiringIn({ writes }: PulseEffects): { id: Id; validUntil: number }[] {
  const expiring: { id: Id; validUntil: number }[] = []
  for (const [id, object] of writes) {
    if (object?.kind === 'spentNonce') expiring.push({ id, validUntil: object.validUntil })
  }
  return expiring
}

function itemAt<T>(items: readonly T[], index: number): T {
  const item = items[index]
  if (item === undefined) throw new RangeError(`no item ${index} of ${items.length}`)
  return item
}
