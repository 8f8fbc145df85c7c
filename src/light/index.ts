export {
  createLightClient,
  type FreshnessOptions,
  type KnowledgeOptions,
  type LightClient,
  type LightClientOptions,
  type VerifiedKnowledge,
  type VerifiedObject,
  type VerifiedReceipt,
  type WaitOptions,
} from './client.js'
export {
  ConflictingCertificates,
  isNodeAway,
  LIGHT_CLIENT_ERRORS,
  LightClientError,
  type CertifiedBytes,
  type LightClientCode,
} from './errors.js'
export type * from './node-api.js'
export * from './rules/index.js'
export { httpTransport, MAX_ANSWER_BYTES, type NodeAnswer, type NodeTransport, type RequestOptions } from './transport.js'
export type { VerifiedHeader } from './verified-headers.js'
