import { fromHex, SionError, type Id } from '../codec/index.js'
import { configHash, decodeObject, objectHash, type IssuedClaim, type LedgerObject, type Parameters, type StateView } from '../ledger/index.js'
import { sameHash, StateTree } from '../merkle/index.js'
import {
  chainOf,
  genesisHash,
  headerHash,
  nextBeacon,
  quorumOf,
  totalStake,
  validatorSetHash,
  ZERO_ID,
  type Genesis,
  type Header,
  type Validator as ValidatorEntry,
} from '../pulse/index.js'
import { Knowledge, type KnownClaim } from './knowledge.js'
import type { PulseCommitments } from './pulse-execution.js'

/** What the genesis fixes for the chain's whole life. */
export interface Chain {
  readonly id: Id
  readonly name: string
  readonly genesis: Id
  readonly epoch: number
  readonly parameters: Parameters
  readonly configHash: Id
  readonly validators: readonly ValidatorEntry[]
  readonly validatorSetHash: Id
  readonly totalStake: bigint
  readonly quorum: bigint
}

export function chainFrom(genesis: Genesis): Chain {
  const { validators, parameters } = genesis
  const total = totalStake(validators)
  return {
    id: chainOf(genesis),
    name: genesis.name,
    genesis: genesisHash(genesis),
    epoch: 0,
    parameters,
    configHash: configHash(parameters),
    validators,
    validatorSetHash: validatorSetHash(validators),
    totalStake: total,
    quorum: quorumOf(total),
  }
}

/** A certified Pulse as the next one builds on it. The genesis is Pulse 0. */
export interface Tip {
  readonly number: number
  /** Of its header; for the genesis, of the genesis. */
  readonly hash: Id
  readonly round: number
  readonly time: number
  readonly beacon: Id
  readonly tree: StateTree
}

export function genesisTip(genesis: Genesis, tree: StateTree): Tip {
  return { number: 0, hash: genesisHash(genesis), round: 0, time: genesis.time, beacon: ZERO_ID, tree }
}

export function tipOf(header: Header, tree: StateTree): Tip {
  const { number, round, time, beacon } = header
  return { number, hash: headerHash(header), round, time, beacon, tree }
}

/** The header that follows `parent` with these commitments. Everything but time and round follows from the chain. */
export function nextHeader(
  chain: Chain,
  parent: Tip,
  when: { readonly time: number; readonly round: number },
  commitments: PulseCommitments,
): Header {
  return {
    chain: chain.id,
    epoch: chain.epoch,
    number: parent.number + 1,
    round: when.round,
    parent: parent.hash,
    time: when.time,
    beacon: nextBeacon(fromHex(parent.beacon, 'beacon', 32), fromHex(parent.hash, 'parent', 32)),
    stateRoot: commitments.stateRoot,
    knowledgeRoot: commitments.knowledgeRoot,
    knowledgeSize: commitments.knowledgeSize,
    receiptsRoot: commitments.receiptsRoot,
    receiptCount: commitments.receipts.length,
    dataRoot: ZERO_ID,
    laneRoot: ZERO_ID,
    forcedPending: 0,
    forcedOverdue: 0,
    configHash: chain.configHash,
    validatorSetHash: chain.validatorSetHash,
  }
}

/** Where objects' bytes are; nothing it says is believed without the tree. */
export interface ObjectSource {
  object(id: Id): Uint8Array | undefined
}

/**
 * The state of `tree`, with its objects read from `source`.
 * The view throws SionError `state_damaged` where the source has not what the tree commits to.
 */
export function stateView(tree: StateTree, source: ObjectSource): StateView {
  return {
    get(id): LedgerObject | undefined {
      const hash = tree.get(id)
      if (hash === undefined) return undefined
      const bytes = source.object(id)
      if (bytes === undefined || !sameHash(objectHash(bytes), hash)) {
        throw new SionError('state_damaged', `the data folder does not hold object ${id.slice(0, 8)} as the state root commits to it`)
      }
      return decodeObject(bytes)
    },
  }
}

/**
 * The tree over stored objects, and the knowledge log that the claims among them make up. Whoever calls compares their
 * roots with certified ones.
 */
export function treeOf(objects: Iterable<readonly [Id, Uint8Array]>): { tree: StateTree; count: number; knowledge: Knowledge } {
  const hashes = new Map<Id, Uint8Array>()
  const claims: (KnownClaim & IssuedClaim)[] = []
  for (const [id, bytes] of objects) {
    hashes.set(id, objectHash(bytes))
    const object = decodeObject(bytes)
    if (object.kind === 'claim') claims.push({ claim: id, pulse: object.issued, logIndex: object.logIndex })
  }
  const knowledge = new Knowledge()
  for (const claim of claims.sort((a, b) => a.logIndex - b.logIndex)) knowledge.append(claim.pulse, [claim])
  return { tree: StateTree.empty.update(hashes), count: hashes.size, knowledge }
}
