export { action, MAX_PURPOSE_BYTES, type Action, type SetDual, type Transfer } from './actions.js'
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
export { accountOf, devnetSeed, spentNonceId, TREASURY, USD } from './ids.js'
export {
  decodeObject,
  dualPublicKeys,
  EMPTY_ACCOUNT,
  encodeObject,
  objectHash,
  type Account,
  type LedgerObject,
  type SpentNonce,
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
