import type { Id } from '../codec/index.js'
import { keysFromSeed, type DualPublicKeys } from '../crypto/keys.js'
import { inlineSignatures, type Signatures } from '../crypto/signatures.js'
import { accountOf, devnetSeed } from '../ledger/index.js'

/** What an account signs with. Whoever implements it may keep its keys elsewhere: only signatures come out. */
export interface Wallet {
  readonly account: Id
  /** How sentences call it; a wallet made from a bare seed has none. */
  readonly name?: string
  readonly publicKeys: DualPublicKeys
  /** ML-DSA-44 alone (FIPS 204): what a payment needs. `message` is a tagged 32-byte hash. */
  sign(message: Uint8Array): Promise<{ mlDsa: Uint8Array; slhDsa?: Uint8Array }>
  /** Both algorithms. SLH-DSA costs tens to hundreds of milliseconds: only for accounts that are dual. */
  signDual(message: Uint8Array): Promise<{ mlDsa: Uint8Array; slhDsa: Uint8Array }>
}

export interface WalletOptions {
  name?: string
  /** Where signing runs. Default: in this thread, natively where the runtime can. */
  signatures?: Signatures
}

/**
 * The wallet of a 32-byte seed. Its secrets are plain memory of this process.
 * @throws SignatureError `malformed_key` unless the seed has 32 bytes.
 */
export function walletFromSeed(seed: Uint8Array, options: WalletOptions = {}): Wallet {
  const { name, signatures = inlineSignatures } = options
  const keys = keysFromSeed(seed)
  const signMlDsa = (message: Uint8Array) => signatures.sign('ml-dsa-44', keys, message)
  return {
    account: accountOf(keys.publicKeys),
    ...(name === undefined ? {} : { name }),
    publicKeys: keys.publicKeys,
    async sign(message) {
      return { mlDsa: await signMlDsa(message) }
    },
    async signDual(message) {
      const [mlDsa, slhDsa] = await Promise.all([
        signMlDsa(message),
        signatures.sign('slh-dsa-sha2-128f', keys, message),
      ])
      return { mlDsa, slhDsa }
    },
  }
}

/** The wallet that everyone on a devnet can derive from a name. Worth nothing anywhere else. */
export function devnetWallet(name: string, options: { signatures?: Signatures } = {}): Wallet {
  return walletFromSeed(devnetSeed(name), { ...options, name })
}

/** Whether a genesis of this name is a devnet's: there, and only there, names are wallets. */
export function isDevnet(chainName: string): boolean {
  return chainName.startsWith('sion-devnet')
}
