export {
  action,
  MAX_CLAIMS,
  MAX_PURPOSE_BYTES,
  type Action,
  type CloseStream,
  type OpenStream,
  type SetDual,
  type SettleJump,
  type SettleStreams,
  type StreamClaim,
  type TopUpStream,
  type Transfer,
} from './actions.js'
export {
  admissible,
  execute,
  keysToCheck,
  overlay,
  type Executed,
  type ExecutionContext,
  type Inadmissible,
  type InadmissibleCode,
} from './execute.js'
export { feeOf, spendOf } from './fees.js'
export { accountOf, devnetSeed, spentNonceId, streamId, TREASURY, USD } from './ids.js'
export {
  decodeObject,
  dualPublicKeys,
  EMPTY_ACCOUNT,
  encodeObject,
  objectHash,
  type Account,
  type LedgerObject,
  type SpentNonce,
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
