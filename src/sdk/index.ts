/** Wallets, a node and payments, in any runtime. What needs Node's file system is in ./node.js. */
export {
  assessClaim,
  claimStatus,
  DEFAULT_CLAIM_PULSES,
  DEFAULT_SCHEMA,
  depositBond,
  issueClaim,
  issuedClaim,
  parseKappa,
  readBond,
  readClaim,
  withdrawBond,
  type Assessment,
  type BondChange,
  type ClaimStatus,
  type NewClaim,
  type ProvenClaim,
} from './claims/claims.js'
export { formulaText, parseAdjudicator, parseFormula } from './claims/formula-text.js'
export {
  assessmentJson,
  bondJson,
  claimIssuedJson,
  claimJson,
  type AssessmentJson,
  type AtomJson,
  type BondJson,
  type ClaimIssuedJson,
  type ClaimJson,
  type CostJson,
} from './claims/json.js'
export {
  balanceJson,
  outcomeJson,
  paymentJson,
  verifiedReceiptJson,
  type BalanceJson,
  type OutcomeJson,
  type PaymentJson,
  type VerifiedReceiptJson,
} from './json.js'
export { createNodeClient, type AccountClaim, type NodeClient, type Submission } from './node-client.js'
export { PayerChain, type ChainSecret, type CheckpointJump } from './streams/payer-chain.js'
export {
  claimOf,
  closeStream,
  DEFAULT_STREAM_PULSES,
  openStream,
  readStream,
  settleStream,
  topUpStream,
  type NewStream,
  type OpenedStream,
  type OpenStreamOptions,
  type TopUp,
} from './streams/stream-actions.js'
export {
  SLACK,
  StreamError,
  StreamPayer,
  type LedgerSays,
  type Place,
  type Position,
  type PositionLog,
  type StreamErrorCode,
  type StreamPayerOptions,
  type StreamPayment,
  type StreamPayRequest,
  type StreamTerms,
} from './streams/stream-payer.js'
export type { LatestTerms, StreamSecret } from './streams/stream-secret.js'
export {
  awaitOutcome,
  isLedgerAway,
  pay,
  provenAccount,
  submitAndWait,
  transact,
  waitForReceipt,
  type Ledger,
  type Outcome,
  type PayOptions,
  type TransactOptions,
  type WaitForOutcome,
} from './transact.js'
export {
  buildTransaction,
  buildTransfer,
  DEFAULT_VALIDITY_PULSES,
  parsePurpose,
  parseText,
  signTransaction,
  type BuildOptions,
  type Signed,
  type SigningState,
  type TransferOptions,
} from './transfers.js'
export { devnetWallet, isDevnet, walletFromSeed, type Wallet, type WalletOptions } from './wallet.js'
