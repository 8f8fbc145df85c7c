import { messageOf, SionError } from '../codec/index.js'
import type { Certificate, Vote } from '../pulse/index.js'
import type { Chain, Tip } from './chain.js'
import type { Logger } from './logger.js'
import { encodeProposal, type Proposal } from './proposal.js'
import { Signal } from './signal.js'
import type { Store } from './store.js'
import type { Validator } from './validator.js'

/** A validator that could not sign is asked again after so long, in milliseconds. */
const ASK_AGAIN_MS = 1_000

/**
 * The validators together: asks as many as a quorum needs, and a further one when one is stopped or disagrees. Where
 * too few run it waits until enough do.
 */
export class Committee {
  /** Somebody started, stopped, voted or failed, or certifying is to give up. */
  readonly #changed = new Signal()

  constructor(
    readonly validators: readonly Validator[],
    private readonly chain: Chain,
    private readonly store: Store,
    private readonly logger: Logger,
  ) {}

  get runningStake(): bigint {
    return stakeOf(this.validators.filter(({ running }) => running))
  }

  get active(): boolean {
    return this.runningStake >= this.chain.quorum
  }

  setRunning(index: number, running: boolean): void {
    const validator = this.validators[index]
    if (validator === undefined) {
      throw new SionError('unknown_validator', `validator: there are ${this.validators.length}, numbered from 0, and no ${index}`)
    }
    if (validator.running === running) return
    const wasActive = this.active
    validator.running = running
    this.logger.info(`validator ${index} ${running ? 'started' : 'stopped'}: ${this.runningStake} of ${this.chain.totalStake} stake runs, quorum ${this.chain.quorum}`)
    if (wasActive && !this.active) this.logger.warn('the chain is halted: too few validators run')
    if (!wasActive && this.active) this.logger.info('the chain goes on')
    this.#changed.fire()
  }

  follow(certified: Tip): void {
    for (const validator of this.validators) validator.follow(certified)
  }

  /**
   * Votes of a quorum for `proposal`. Before the first signature is made, `onRecorded` hears that the proposal is on the
   * disk: from then on it is what this number will be.
   * @throws SionError `disagreement` if too few agree, or the reason of `signal`.
   */
  async certify(proposal: Proposal, signal: AbortSignal, onRecorded: () => void): Promise<Certificate> {
    const ballot = new Ballot()
    const giveUp = (): void => this.#changed.fire()
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      for (;;) {
        signal.throwIfAborted()
        const changed = this.#changed.wait()
        const asked = this.#ask(proposal, ballot)
        if (asked.length > 0) onRecorded()
        for (const validator of asked) void this.#collect(validator, proposal, ballot)
        if (this.chain.totalStake - stakeOf(ballot.disagreed) < this.chain.quorum) {
          throw new SionError('disagreement', `too few validators agree with the header proposed for Pulse ${proposal.header.number}`)
        }
        await changed
        if (stakeOf(ballot.votes.keys()) >= this.chain.quorum) return certificateOf(proposal, ballot)
      }
    } finally {
      ballot.over = true
      signal.removeEventListener('abort', giveUp)
    }
  }

  /** Those to ask now; their votes are on the disk. */
  #ask(proposal: Proposal, ballot: Ballot): Validator[] {
    const { header, headerHash } = proposal
    let expected = stakeOf(ballot.votes.keys()) + stakeOf([...ballot.asked].filter(({ running }) => running))
    const agreeing: Validator[] = []
    for (const validator of this.#inTurn(header.round)) {
      if (expected >= this.chain.quorum) break
      if (!validator.running || ballot.holds(validator)) continue
      const objection = validator.examine(proposal)
      if (objection === undefined) {
        agreeing.push(validator)
        expected += validator.stake
      } else {
        ballot.disagreed.add(validator)
        this.logger.error(`validator ${validator.index} does not sign Pulse ${header.number} (${headerHash.slice(0, 8)}): ${objection}`)
      }
    }
    if (agreeing.length > 0) {
      this.store.recordVotes({ number: header.number, headerHash }, agreeing.map(({ index }) => index), encodeProposal(proposal))
    }
    return agreeing
  }

  /** Each begins in its turn, so that all of them sign, and a broken one is noticed. */
  #inTurn(round: number): Validator[] {
    const first = round % this.validators.length
    return [...this.validators.slice(first), ...this.validators.slice(0, first)]
  }

  async #collect(validator: Validator, proposal: Proposal, ballot: Ballot): Promise<void> {
    ballot.asked.add(validator)
    try {
      const slhDsa = validator.sign('slh-dsa-sha2-128f', proposal)
      // The long signatures of all go to the workers first, and the short ones fill the gaps.
      await Promise.resolve()
      const [slow, fast] = await Promise.all([slhDsa, validator.sign('ml-dsa-44', proposal)])
      // Stopped meanwhile: its signatures never left it.
      if (validator.running) ballot.votes.set(validator, { validator: validator.index, mlDsa: fast, slhDsa: slow })
    } catch (error) {
      if (ballot.over) return
      this.logger.error(`validator ${validator.index} cannot sign Pulse ${proposal.header.number}: ${messageOf(error)}`)
      ballot.resting.add(validator)
      setTimeout(() => {
        ballot.resting.delete(validator)
        this.#changed.fire()
      }, ASK_AGAIN_MS).unref()
    } finally {
      ballot.asked.delete(validator)
      this.#changed.fire()
    }
  }
}

/** Who was asked about one proposal, and what came of it. */
class Ballot {
  /** At work on their signatures. */
  readonly asked = new Set<Validator>()
  readonly votes = new Map<Validator, Vote>()
  readonly disagreed = new Set<Validator>()
  /** Could not sign just now. */
  readonly resting = new Set<Validator>()
  /** Nobody waits for more votes. */
  over = false

  holds(validator: Validator): boolean {
    return this.asked.has(validator) || this.votes.has(validator) || this.disagreed.has(validator) || this.resting.has(validator)
  }
}

function certificateOf({ header, headerHash }: Proposal, ballot: Ballot): Certificate {
  const votes = [...ballot.votes.values()].sort((a, b) => a.validator - b.validator)
  return { epoch: header.epoch, number: header.number, headerHash, votes }
}

function stakeOf(validators: Iterable<Validator>): bigint {
  let sum = 0n
  for (const { stake } of validators) sum += stake
  return sum
}
