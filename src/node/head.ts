import { issuedClaims, overlay, type LedgerObject, type StateView } from '../ledger/index.js'
import type { Id } from '../codec/index.js'
import { stateView, type ObjectSource, type Tip } from './chain.js'
import type { Knowledge } from './knowledge.js'

/** Where the chain stands, in memory: the last certified Pulse, and the one that is being certified, if any. */
export class Head {
  #inFlight: { readonly number: number; readonly writes: ReadonlyMap<Id, LedgerObject | null> } | undefined

  constructor(
    private readonly objects: ObjectSource,
    public certified: Tip,
    public objectCount: number,
    /** The knowledge log of the certified chain. */
    public readonly knowledge: Knowledge,
  ) {}

  /** The state in which the next transaction will find itself: what is in flight will be certified as it is. */
  state(): StateView {
    const certified = stateView(this.certified.tree, this.objects)
    return this.#inFlight === undefined ? certified : overlay(certified, this.#inFlight.writes)
  }

  /** The latest Pulse, certified or not. */
  get latest(): number {
    return this.#inFlight?.number ?? this.certified.number
  }

  /** The Pulse that can take a new transaction. */
  get next(): number {
    return this.latest + 1
  }

  propose(number: number, writes: ReadonlyMap<Id, LedgerObject | null>): void {
    this.#inFlight = { number, writes }
  }

  certify(tip: Tip, writes: ReadonlyMap<Id, LedgerObject | null>): void {
    for (const [id, object] of writes) {
      const was = this.certified.tree.get(id) !== undefined
      if (was && object === null) this.objectCount--
      if (!was && object !== null) this.objectCount++
    }
    this.knowledge.append(tip.number, issuedClaims(writes))
    this.certified = tip
    this.#inFlight = undefined
  }
}
