import { toHex, type Id } from '../codec/index.js'
import {
  digestOf,
  encodeObject,
  encodeReceipt,
  execute,
  knowledgeOf,
  objectHash,
  overlay,
  type ExecutionContext,
  type Inadmissible,
  type LedgerObject,
  type Receipt,
  type SignedTransaction,
  type StateView,
} from '../ledger/index.js'
import { leafHash, rootOf, type StateTree } from '../merkle/index.js'

/** What a Pulse does to the state. */
export interface PulseEffects {
  /** Those that executed, in order; as many receipts. */
  readonly transactions: readonly SignedTransaction[]
  readonly receipts: readonly Receipt[]
  /** Those that no Pulse may hold. An honest proposal has none. */
  readonly inadmissible: readonly { readonly digest: Id; readonly refusal: Inadmissible }[]
  readonly writes: ReadonlyMap<Id, LedgerObject | null>
  /** The knowledge log after it. */
  readonly knowledge: { readonly knowledgeRoot: Id; readonly knowledgeSize: number }
}

/** What a header says of {@link PulseEffects}, and the bytes behind it. */
export interface PulseCommitments {
  readonly tree: StateTree
  readonly stateRoot: Id
  readonly knowledgeRoot: Id
  readonly knowledgeSize: number
  readonly receiptsRoot: Id
  readonly receipts: readonly Uint8Array[]
  readonly objects: ReadonlyMap<Id, Uint8Array | null>
}

/**
 * Executes a Pulse on the state before it: first `expired`, the used-up nonces that need not be remembered any more,
 * are deleted, then every transaction sees what those before it did. Pure and deterministic; signatures are checked
 * elsewhere.
 */
export function executePulse(
  state: StateView,
  work: { readonly expired: readonly Id[]; readonly transactions: readonly SignedTransaction[] },
  context: ExecutionContext,
): PulseEffects {
  const writes = new Map<Id, LedgerObject | null>(work.expired.map((id) => [id, null]))
  // Reads `writes` as they grow.
  const view = overlay(state, writes)
  const transactions: SignedTransaction[] = []
  const receipts: Receipt[] = []
  const inadmissible: { digest: Id; refusal: Inadmissible }[] = []
  for (const tx of work.transactions) {
    const result = execute(view, tx, context)
    if (result.kind === 'inadmissible') {
      inadmissible.push({ digest: digestOf(tx.body), refusal: result })
      continue
    }
    for (const [id, object] of result.writes) writes.set(id, object)
    const { digest, outcome, fee, events } = result
    receipts.push({ digest, index: receipts.length, pulse: context.pulse, outcome, fee, events })
    transactions.push(tx)
  }
  return { transactions, receipts, inadmissible, writes, knowledge: knowledgeOf(view) }
}

/** The roots after `effects` on the state whose tree is `before`. */
export function commitmentsOf(before: StateTree, effects: Pick<PulseEffects, 'receipts' | 'writes' | 'knowledge'>): PulseCommitments {
  const objects = new Map<Id, Uint8Array | null>()
  const hashes = new Map<Id, Uint8Array | null>()
  for (const [id, object] of effects.writes) {
    const bytes = object === null ? null : encodeObject(object)
    objects.set(id, bytes)
    hashes.set(id, bytes === null ? null : objectHash(bytes))
  }
  const tree = before.update(hashes)
  const receipts = effects.receipts.map(encodeReceipt)
  return { tree, stateRoot: toHex(tree.root), ...effects.knowledge, receiptsRoot: toHex(rootOf(receipts.map(leafHash))), receipts, objects }
}

