/** The part of the SDK that keeps files: Node only. */
export { openKnowledgeMemory, type KnowledgeMemory } from './claims/knowledge-memory.js'
export { openNameBook, type NameBook } from './name-book.js'
export { openStreamFiles, type OpenPayerOptions, type StreamFiles } from './streams/stream-files.js'
export {
  openWalletStore,
  parseNameOrId,
  parseWalletName,
  resolveAccount,
  resolveWallet,
  sionHome,
  type WalletStore,
} from './wallet-store.js'
export { devnetWallet, isDevnet, walletFromSeed, type Wallet, type WalletOptions } from './wallet.js'
