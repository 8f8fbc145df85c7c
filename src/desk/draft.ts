import type { Jump } from './stream-ledger.js'
import type { StreamView } from './stream-view.js'
import type { Tab } from './tab.js'
import type { Ticket } from './ticket.js'

/** A tab as it will be once a batch of work is written. */
export class Draft {
  changed = false
  jumpsChanged = false
  /** Some work cannot be refused before the store was asked again. */
  wantsStore = false
  /** … and these not before the ledger was. */
  readonly wantsLedger: Work[] = []
  /** Sold in this batch. */
  readonly sold: Ticket[] = []
  /** In flight so far, and not after this batch. */
  readonly returned: Ticket[] = []

  constructor(
    readonly tab: Tab,
    public jumps: readonly Jump[],
    readonly view: StreamView,
    readonly now: number,
    /** Whether the tab, and the view, were read after this batch was taken up. */
    readonly storeIsFresh: boolean,
    readonly ledgerIsFresh: boolean,
  ) {}
}

/** Something to do with a tab. Work that meets in one batch is written together. */
export interface Work {
  /** Decides and changes the draft. Called again, on a new draft, when the store turned out to be further on. */
  apply(draft: Draft): void
  /** The draft is durable. */
  done(): void
  /** It is not, and nothing of it counts. */
  failed(error: unknown): void
}
