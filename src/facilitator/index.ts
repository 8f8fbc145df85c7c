/** Facilitators in this process or behind HTTP, in any runtime. The service itself is in ./node.js. */
export { inlineSignatures, type Signatures } from '../crypto/signatures.js'
export { SETTLEMENT_PENDING, type Facilitator } from '../x402/facilitator.js'
export { silent, type Logger } from '../x402/logger.js'
export { localFacilitator, type LocalFacilitatorOptions } from './local.js'
export { ASKER_HEADER, remoteFacilitator, type RemoteFacilitatorOptions } from './remote.js'
