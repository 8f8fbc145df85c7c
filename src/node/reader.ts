import { formatUsd, SionError, toBase64, toHex, type Id } from '../codec/index.js'
import { accountAt, decodeReceipt, eventJson } from '../ledger/index.js'
import type { AccountJson, EventJson, KnowledgeJson, ObjectJson, PulseJson, ReceiptJson, StatusJson, TransactionJson } from '../light/node-api.js'
import { encodePath, encodeStateProof, leafHash, LogTree } from '../merkle/index.js'
import { stateView, type Chain } from './chain.js'
import type { Committee } from './committee.js'
import type { Head } from './head.js'
import type { Store } from './store.js'

/** Receipts of a Pulse with their tree. Everybody who waits for one Pulse asks at once. */
interface Receipts {
  readonly receipts: readonly Uint8Array[]
  readonly tree: LogTree
}

const KEPT_TREES = 8

/** What the node answers about the certified chain, as JSON (`light/node-api.ts`). */
export class Reader {
  readonly #recent = new Map<number, Receipts>()

  constructor(
    private readonly chain: Chain,
    private readonly head: Head,
    private readonly store: Store,
    private readonly committee: Committee,
  ) {}

  status(): StatusJson {
    const { chain, committee } = this
    const { number, round, beacon, tree } = this.head.certified
    const { knowledge } = this.head
    return {
      active: committee.active,
      active_validators: committee.validators.filter(({ running }) => running).length,
      anchors: 0,
      beacon,
      certified_pulse: number,
      chain: chain.id,
      chain_id: chain.name,
      claims: knowledge.size,
      commitment: {
        config: chain.configHash,
        knowledge_root: toHex(knowledge.tree.root()),
        knowledge_size: knowledge.size,
        pulse: number,
        state_root: toHex(tree.root),
      },
      epoch: chain.epoch,
      // The one epoch does not end.
      epoch_end: Number.MAX_SAFE_INTEGER,
      executed: [this.store.executed()],
      forced_overdue: 0,
      forced_pending: 0,
      genesis: chain.genesis,
      insecure_signatures: false,
      objects: this.head.objectCount,
      // There are no world proofs yet.
      proven_pulse: 0,
      pulse: this.head.latest,
      round,
      session: 0,
      shards: 1,
      validator: committee.validators[0]?.id ?? '',
      validators: committee.validators.length,
    }
  }

  /** Undefined where the id is that of something else. */
  account(id: Id): AccountJson | undefined {
    const { tree, number } = this.head.certified
    const account = accountAt(stateView(tree, this.store), id)
    if (account === undefined) return undefined
    return { account: id, balance: formatUsd(account.balance), dual: account.dual, keys_known: account.keys !== undefined, pulse: number }
  }

  /** Undefined before the first Pulse: nothing can be proven by then. */
  object(id: Id, withCertificate: boolean): ObjectJson | undefined {
    const { tree, number } = this.head.certified
    const pulse = this.pulse(number, withCertificate)
    if (pulse === undefined) return undefined
    const bytes = this.store.object(id)
    return { id, object: bytes === undefined ? null : toBase64(bytes), proof: encodeStateProof(tree.prove(id)), pulse }
  }

  pulse(number: number, withCertificate: boolean): PulseJson | undefined {
    const stored = this.store.pulse(number)
    if (stored === undefined) return undefined
    const { header, certificate } = stored
    return { number, header: toBase64(header), certificate: withCertificate ? toBase64(certificate ?? new Uint8Array(0)) : '' }
  }

  transaction(digest: Id): TransactionJson | undefined {
    const place = this.store.placeOf(digest)
    const body = place && this.store.body(place)
    return body && { digest, body: toBase64(body), pulse: place.pulse }
  }

  receipt(digest: Id, withCertificate: boolean): ReceiptJson | undefined {
    const place = this.store.placeOf(digest)
    if (place === undefined) return undefined
    const { receipts, tree } = this.#receiptsOf(place.pulse)
    const receipt = receipts[place.index]
    const pulse = this.pulse(place.pulse, withCertificate)
    if (receipt === undefined || pulse === undefined) {
      throw new SionError('state_damaged', `the data folder lacks the receipt of ${digest.slice(0, 8)}`)
    }
    const proof = { index: place.index, size: tree.size, path: encodePath(tree.inclusion(place.index)) }
    return { receipt: toBase64(receipt), proof, pulse }
  }

  /**
   * The `limit` claims from place `from` of the knowledge log on, each with its path to the root of the certified Pulse,
   * and, for who has seen the log at `known` entries, that it only grew since. Undefined before the first Pulse.
   */
  knowledge(from: number, limit: number, known: number, withCertificate: boolean): KnowledgeJson | undefined {
    const { tree, size } = this.head.knowledge
    const pulse = this.pulse(this.head.certified.number, withCertificate)
    if (pulse === undefined) return undefined
    const entries: KnowledgeJson['entries'] = []
    for (let index = from; index < Math.min(from + limit, size); index++) {
      const found = this.head.knowledge.at(index)
      if (found !== undefined) entries.push({ claim: found.claim, index, path: encodePath(tree.inclusion(index)) })
    }
    return { entries, consistency: known > size ? [] : encodePath(tree.consistency(known)), pulse }
  }

  /** The first `limit` events from Pulse `from` on. What the transactions of a Pulse did stands before the claims it put on record. */
  events(from: number, limit: number): EventJson[] {
    const { knowledge } = this.head
    const found: EventJson[] = []
    let next = knowledge.firstOf(from)
    const issuedBefore = (pulse: number): void => {
      for (let entry = knowledge.at(next); entry !== undefined && entry.pulse < pulse && found.length < limit; entry = knowledge.at(++next)) {
        found.push({ event: { ClaimIssued: { claim: entry.claim, log_index: next } }, pulse: entry.pulse, tx: null })
      }
    }
    for (const bytes of this.store.receiptsFrom(from)) {
      const { digest, pulse, events } = decodeReceipt(bytes)
      issuedBefore(pulse)
      for (const event of events) {
        if (found.length === limit) return found
        found.push({ event: eventJson(event), pulse, tx: digest })
      }
      if (found.length === limit) return found
    }
    issuedBefore(Infinity)
    return found
  }

  #receiptsOf(pulse: number): Receipts {
    const known = this.#recent.get(pulse)
    if (known !== undefined) return known
    const receipts = this.store.receiptsOf(pulse)
    const entry = { receipts, tree: LogTree.from(receipts.map(leafHash)) }
    this.#recent.set(pulse, entry)
    for (const oldest of this.#recent.keys()) {
      if (this.#recent.size <= KEPT_TREES) break
      this.#recent.delete(oldest)
    }
    return entry
  }
}
