/** Facilitators, and the service that puts one behind HTTP: Node only. */
export { createSignaturePool } from '../crypto/signature-pool.js'
export * from './index.js'
export { startFacilitator, type FacilitatorService, type FacilitatorServiceOptions } from './service.js'
