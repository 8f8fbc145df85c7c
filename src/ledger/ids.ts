import { fromHex, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import type { DualPublicKeys } from '../crypto/keys.js'

const encoder = new TextEncoder()

/** An account's id follows from its keys: `H("sion/account/v1", mlDsaPublic ‖ slhDsaPublic)`. */
export function accountOf(keys: DualPublicKeys): Id {
  return toHex(taggedHash('sion/account/v1', keys.mlDsa, keys.slhDsa))
}

/** Where the ledger remembers that `signer` used `nonce`. */
export function spentNonceId(signer: Id, nonce: string): Id {
  return toHex(taggedHash('sion/spent-nonce/v1', fromHex(signer, 'signer', 32), fromHex(nonce, 'nonce', 16)))
}

/** A stream's id follows from the transaction that opened it: opening twice by mistake takes two transactions. */
export function streamId(openedBy: Id): Id {
  return toHex(taggedHash('sion/stream/v1', fromHex(openedBy, 'digest', 32)))
}

/** One bond an owner and label: a second deposit adds to it. */
export function bondId(owner: Id, label: string): Id {
  return toHex(taggedHash('sion/bond/v1', fromHex(owner, 'owner', 32), encoder.encode(label)))
}

/** Where the state keeps the frontier of the knowledge log. */
export const KNOWLEDGE_LOG: Id = toHex(taggedHash('sion/knowledge-log/v1'))

/** Fees go to this account, whose keys nobody has: its id is a hash of no key. */
export const TREASURY: Id = toHex(taggedHash('sion/treasury/v1'))

/** The one asset. */
export const USD: Id = toHex(taggedHash('sion/asset/v1', encoder.encode('USD')))

/** The seed of the devnet wallet of a name: anyone can derive it, so it is worth nothing outside a devnet. */
export function devnetSeed(name: string): Uint8Array {
  return taggedHash('sion/devnet-wallet/v1', encoder.encode(name))
}
