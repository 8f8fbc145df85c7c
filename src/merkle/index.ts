export { HASH_LENGTH, isHash, sameHash, type Hash } from './hash32.js'
export { appendLeaf, frontierRoot, peakCount, type LogFrontier } from './log-frontier.js'
export { decodePath, encodePath, verifyConsistency, verifyInclusion } from './log-proof.js'
export {
  committedRoot,
  consistencyPath,
  EMPTY_LOG_ROOT,
  inclusionPath,
  leafHash,
  levelsOf,
  LogTree,
  nodeHash,
  rootOf,
  type MerkleLevels,
} from './log-tree.js'
export { EMPTY_STATE_ROOT } from './state-node.js'
export {
  decodeStateProof,
  encodeStateProof,
  verifyState,
  type StateProof,
  type StateProofJson,
} from './state-proof.js'
export { StateTree, type StateChanges, type TracedState } from './state-tree.js'
