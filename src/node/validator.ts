import { messageOf, SionError, type Id } from '../codec/index.js'
import type { DualKeys, SignatureScheme } from '../crypto/keys.js'
import type { Signatures } from '../crypto/signatures.js'
import type { StateTree } from '../merkle/index.js'
import { headerHash, validatorId, voteMessage } from '../pulse/index.js'
import { nextHeader, stateView, type Chain, type ObjectSource, type Tip } from './chain.js'
import type { Proposal } from './proposal.js'
import { commitmentsOf, executePulse } from './pulse-execution.js'

/** What a validator's vote was recorded for, durably. The store has it. */
export interface VoteBook {
  voteOf(validator: number): { readonly number: number; readonly headerHash: Id } | undefined
  /** Used-up nonces to delete in a Pulse. */
  expiredIn(number: number): Id[]
}

/**
 * One validator of the devnet: its keys, and a state tree of its own. It executes what it is asked to sign, from its
 * own parent state, and lets no signature go before the vote is on the disk.
 *
 * What it shares with the others, being in one process: the bytes of objects, checked against its own tree; the list of
 * nonces to forget; and that a transaction's signatures were checked, once, when it was submitted.
 */
export class Validator {
  readonly id: Id
  readonly stake: bigint
  /** A stopped validator is asked nothing and lets nothing out, and comes back by following a certificate. */
  running = true
  #parent: Tip
  /** Its own state after the proposal it agreed to. */
  #examined: { headerHash: Id; tree: StateTree } | undefined

  constructor(
    readonly index: number,
    private readonly keys: DualKeys,
    private readonly chain: Chain,
    parent: Tip,
    private readonly objects: ObjectSource,
    private readonly book: VoteBook,
    private readonly signatures: Signatures,
  ) {
    const entry = chain.validators[index]
    this.id = validatorId(keys.publicKeys)
    if (entry === undefined || validatorId(entry.keys) !== this.id) {
      throw new SionError('data_folder_unusable', `the keys of validator ${index} are not those of the genesis`)
    }
    this.stake = entry.stake
    this.#parent = parent
  }

  /** Executes the proposal. Undefined if every field of the header is what this validator gets too, else what is not. */
  examine({ header, headerHash: asked, transactions }: Proposal): string | undefined {
    if (this.#examined?.headerHash === asked) return undefined
    const { chain } = this
    const parent = this.#parent
    if (header.number !== parent.number + 1) return `Pulse ${header.number} does not follow Pulse ${parent.number}`
    if (header.time <= parent.time) return `its time ${header.time} is not after ${parent.time}`
    if (header.round <= parent.round) return `its round ${header.round} is not after ${parent.round}`
    const vote = this.book.voteOf(this.index)
    if (vote !== undefined && vote.number >= header.number && vote.headerHash !== asked) {
      return `voted for ${vote.headerHash.slice(0, 8)} as Pulse ${vote.number} before`
    }
    try {
      const work = { expired: this.book.expiredIn(header.number), transactions }
      const context = { chain: chain.id, pulse: header.number, parameters: chain.parameters }
      const effects = executePulse(stateView(parent.tree, this.objects), work, context)
      const [bad] = effects.inadmissible
      if (bad !== undefined) return `transaction ${bad.digest.slice(0, 8)} is inadmissible: ${bad.refusal.reason}`
      const commitments = commitmentsOf(parent.tree, effects)
      const own = headerHash(nextHeader(chain, parent, header, commitments))
      if (own !== asked) return `gets header ${own.slice(0, 8)} and state root ${commitments.stateRoot.slice(0, 8)}`
      this.#examined = { headerHash: asked, tree: commitments.tree }
      return undefined
    } catch (error) {
      return messageOf(error)
    }
  }

  /**
   * One of the two signatures of its vote.
   * @throws SionError `vote_not_recorded` unless the vote is examined, and on the disk.
   */
  async sign(scheme: SignatureScheme, { header, headerHash: asked }: Proposal): Promise<Uint8Array> {
    const vote = this.book.voteOf(this.index)
    if (this.#examined?.headerHash !== asked || vote?.number !== header.number || vote.headerHash !== asked) {
      throw new SionError('vote_not_recorded', `validator ${this.index} has not recorded a vote for ${asked.slice(0, 8)}`)
    }
    const { chain, epoch, number } = header
    return this.signatures.sign(scheme, this.keys, voteMessage({ chain, epoch, number, headerHash: asked }))
  }

  /** Goes on from a certified Pulse: on its own tree if it voted, else on the certified one (its root is compared). */
  follow(certified: Tip): void {
    const own = this.#examined?.headerHash === certified.hash ? this.#examined.tree : certified.tree
    this.#parent = { ...certified, tree: own }
    this.#examined = undefined
  }
}
