/**
 * What a buyer's program needs, in any runtime, and the words that every part shares. Sellers import an adapter
 * (`sion-x402/express`, `sion-x402/hono`); README.md lists the other entry points.
 */
export { formatUsd, InputError, messageOf, parseUsd, SionError, type Id, type MicroUsd } from './codec/index.js'
export { payingFetch, PaymentError, settlementOf, type PayingFetch, type PayingFetchOptions, type Quote } from './fetch/index.js'
export { createLightClient, httpTransport, LightClientError, type LightClient } from './light/index.js'
export { networkOf } from './pulse/index.js'
export { devnetWallet, walletFromSeed, type Wallet } from './sdk/index.js'
