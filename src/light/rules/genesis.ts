import { shortId, type Id } from '../../codec/index.js'
import { configHash } from '../../ledger/index.js'
import {
  chainOf,
  decodeGenesis,
  genesisHash,
  quorumOf,
  totalStake,
  validatorSetHash,
  validatorSetProblem,
  type Genesis,
  type Validator,
} from '../../pulse/index.js'
import { LightClientError } from '../errors.js'
import { canonical } from './canonical.js'

/** Validators with what their stake adds up to, in micro-USD. */
export interface ProvenSet {
  readonly epoch: number
  readonly set: readonly Validator[]
  /** What headers name it by. */
  readonly setHash: Id
  readonly total: bigint
  /** ⌊2·total/3⌋ + 1. */
  readonly quorum: bigint
}

/** What everything else is checked against. All of it follows from the chain's identity. */
export interface Trust extends ProvenSet {
  readonly chain: Id
  /** False: no identity was given, so the node vouched for its own genesis. */
  readonly pinned: boolean
  readonly genesis: Genesis
  readonly genesisHash: Id
  readonly configHash: Id
}

/**
 * Trust in a chain, from its genesis. The identity commits to the whole genesis, the validators' public keys included:
 * there is no registry in which a key could stand under an id that it does not derive.
 * @param pinned the chain identity that is trusted; undefined takes the node's word.
 * @throws LightClientError `not_canonical`, `wrong_chain`, `bad_validator_set`.
 */
export function checkGenesis(bytes: Uint8Array, pinned: Id | undefined): Trust {
  const genesis = canonical(decodeGenesis, bytes)
  const chain = chainOf(genesis)
  if (pinned !== undefined && chain !== pinned) {
    throw new LightClientError('wrong_chain', `the node’s genesis is that of chain ${shortId(chain)}, not of the pinned ${shortId(pinned)}`)
  }
  return {
    chain,
    pinned: pinned !== undefined,
    genesis,
    genesisHash: genesisHash(genesis),
    configHash: configHash(genesis.parameters),
    ...checkValidatorSet(genesis.validators, 0),
  }
}

/** @throws LightClientError `bad_validator_set`: a set whose stake could be counted twice, or that is none. */
export function checkValidatorSet(set: readonly Validator[], epoch: number): ProvenSet {
  const problem = validatorSetProblem(set)
  if (problem !== undefined) throw new LightClientError('bad_validator_set', problem)
  const total = totalStake(set)
  return { epoch, set, setHash: validatorSetHash(set), total, quorum: quorumOf(total) }
}
