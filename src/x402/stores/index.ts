/** What remembers paid quotes, on Node. Each of them keeps to one contract; choose by how many servers sell. */
export type { NonceStore } from '../nonce-store.js'
export { embeddedNonceStore } from './embedded.js'
export { memoryNonceStore } from './memory.js'
export { redisNonceStore } from './redis.js'
