/**
 * What sellers must not forget, on Node: paid quotes, and the tabs of streams. All servers of one seller share one
 * store of each kind; each kind keeps to one contract, so choose by how many servers sell.
 */
export type { DeskStore } from '../../desk/index.js'
export { embeddedStore as embeddedDeskStore } from '../../desk/stores/embedded.js'
export { memoryStore as memoryDeskStore } from '../../desk/stores/memory.js'
export { redisStore as redisDeskStore, type RedisStoreOptions } from '../../desk/stores/redis.js'
export type { NonceStore } from '../nonce-store.js'
export { embeddedNonceStore } from './embedded.js'
export { memoryNonceStore } from './memory.js'
export { redisNonceStore } from './redis.js'
