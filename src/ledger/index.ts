export {
  action,
  MAX_CLAIMS,
  MAX_PURPOSE_BYTES,
  MAX_SCHEMA_BYTES,
  MAX_SUBJECT_BYTES,
  type Action,
  type CloseStream,
  type DepositBond,
  type IssueClaim,
  type OpenStream,
  type SetDual,
  type SettleJump,
  type SettleStreams,
  type StreamClaim,
  type TopUpStream,
  type Transfer,
  type WithdrawBond,
} from './actions.js'
export { compareCosts, costOfCorruption, type CorruptionCost, type Cost } from './corruption.js'
export { decide, DEFAULT_KAPPA, MAX_KAPPA, type Decision, type Policy, type PricedAtom } from './decision.js'
export {
  admissible,
  execute,
  keysToCheck,
  needsBothSignatures,
  overlay,
  type Executed,
  type ExecutionContext,
  type Inadmissible,
  type InadmissibleCode,
} from './execute.js'
export { feeOf, spendOf } from './fees.js'
export {
  atomId,
  atomsOf,
  DUAL_SIGNATURE,
  MAX_FORMULA_DEPTH,
  MAX_FORMULA_NODES,
  MAX_LABEL_BYTES,
  SIGNATURE_FAMILIES,
  type Atom,
  type Formula,
  type SignatureFamily,
} from './formula.js'
export { accountOf, bondId, devnetSeed, KNOWLEDGE_LOG, spentNonceId, streamId, TREASURY, USD } from './ids.js'
export {
  claimId,
  decodeObject,
  dualPublicKeys,
  EMPTY_ACCOUNT,
  encodeObject,
  objectHash,
  type Account,
  type Bond,
  type Claim,
  type KnowledgeLog,
  type LedgerObject,
  type SpentNonce,
  type Statement,
  type Stream,
} from './objects.js'
export { configHash, DEFAULT_PARAMETERS, parameters, type Parameters } from './parameters.js'
export {
  decodeReceipt,
  encodeReceipt,
  eventJson,
  statusJson,
  type LedgerEvent,
  type Outcome,
  type Receipt,
} from './receipt.js'
export type { StateView } from './rules/rule.js'
export { CERTAIN_DETECTION, claimLeaf, issuedClaims, knowledgeOf, MAX_CLAIM_PULSES, type IssuedClaim } from './rules/claims.js'
export { MAX_STREAM_PULSES, SETTLE_HASH_LIMIT, WALK_LIMIT } from './rules/streams.js'
export { accountAt } from './rules/transfers.js'
export { intentSentence, receiptSentence, shortNames, type Names } from './sentences.js'
export {
  decodeBody,
  decodeSigned,
  digestOf,
  encodeBody,
  encodeSigned,
  MAX_VALIDITY_PULSES,
  type Body,
  type SignedTransaction,
} from './transaction.js'
