import type { Id } from '../../src/codec/index.js'
import { SIZES } from '../../src/crypto/keys.js'
import {
  accountOf,
  DEFAULT_PARAMETERS,
  EMPTY_ACCOUNT,
  knowledgeOf,
  type Action,
  type ExecutionContext,
  type LedgerObject,
  type SignedTransaction,
  type StateView,
} from '../../src/ledger/index.js'

export const CHAIN: Id = 'c'.repeat(64)

/** A signer of the rules' tests: keys that derive its id, and signatures that nobody checks here. */
export function signer(seed: number): { id: Id; keys: NonNullable<SignedTransaction['keys']> } {
  const keys = { mlDsa: new Uint8Array(SIZES.mlDsaPublic).fill(seed), slhDsa: new Uint8Array(SIZES.slhDsaPublic).fill(seed) }
  return { id: accountOf(keys), keys }
}

export function unsigned(from: ReturnType<typeof signer>, nonce: number, action: Action, validUntil = 10): SignedTransaction {
  return {
    body: { chain: CHAIN, signer: from.id, nonce: nonce.toString(16).padStart(32, '0'), validUntil, action },
    keys: from.keys,
    mlDsa: new Uint8Array(SIZES.mlDsaSignature),
  }
}

export function pay(to: Id, amount: bigint): Action {
  return { kind: 'transfer', to, amount, purpose: '' }
}

export function at(pulse: number): ExecutionContext {
  return { chain: CHAIN, pulse, parameters: DEFAULT_PARAMETERS }
}

export function holding(balances: readonly (readonly [Id, bigint])[]): Map<Id, LedgerObject> {
  return new Map(balances.map(([id, balance]) => [id, { ...EMPTY_ACCOUNT, balance }]))
}

export function viewOf(objects: ReadonlyMap<Id, LedgerObject>): StateView {
  return { get: (id) => objects.get(id) }
}

export function apply(objects: Map<Id, LedgerObject>, writes: ReadonlyMap<Id, LedgerObject | null>): void {
  for (const [id, object] of writes) {
    if (object === null) objects.delete(id)
    else objects.set(id, object)
  }
}

export function moneyIn(objects: ReadonlyMap<Id, LedgerObject>): bigint {
  let sum = 0n
  for (const object of objects.values()) if (object.kind === 'account') sum += object.balance
  return sum
}

/** What a Pulse without transactions does, on a chain without claims. */
export const NOTHING_DONE = { receipts: [], knowledge: knowledgeOf({ get: () => undefined }) }
