import type { Id } from '../codec/index.js'
import { CHECKPOINT_EVERY } from '../crypto/chain-step.js'
import type { Draft, Work } from './draft.js'
import { checkJump, checkPlace, checkTerms, isGenuine, placeOf, type StreamPayment } from './payment.js'
import { refusals, UnknownStream, type Refusal } from './refusal.js'
import { planOf, type SettlePlan } from './settle-plan.js'
import type { Jump } from './stream-ledger.js'
import type { StreamLine } from './stream-line.js'
import { Ticket, type Accepted } from './ticket.js'

/** Ranges of used steps that a tab keeps apart, and checkpoints' paths: more are not needed by anyone honest. */
const MAX_USED_RANGES = 256
const MAX_JUMPS = 32

/** One payment. */
export class PaymentWork implements Work {
  #verdict: Accepted | Refusal | undefined
  /** An element found genuine stays so, however far the tab moves on meanwhile: it is hashed once. */
  #genuine = false

  constructor(
    readonly line: StreamLine,
    readonly payment: StreamPayment,
    readonly price: bigint,
    readonly payee: Id,
    readonly resolve: (verdict: Accepted | Refusal) => void,
    readonly reject: (error: unknown) => void,
  ) {}

  apply(draft: Draft): void {
    this.#verdict = this.#judge(draft)
  }

  /** Undefined while the store or the ledger must be asked first. */
  #judge(draft: Draft): Accepted | Refusal | undefined {
    const { tab, view } = draft
    const { payment } = this
    const { window, margin } = this.line.rules
    const terms = checkTerms(payment, this.payee, view)
    if (terms !== undefined) return terms
    const steps = view.steps(this.price)
    if (typeof steps !== 'number') return steps

    const place = tab.closing ? refusals.closing() : checkPlace(payment, steps, tab, window)
    if (place !== undefined) {
      // Another server may have moved the tab on since this one last saw it.
      if (draft.storeIsFresh) return place
      draft.wantsStore = true
      return undefined
    }
    if (!this.#genuine && !isGenuine(payment, view, tab)) {
      return refusals.element(payment.position, placeOf(tab, window))
    }
    this.#genuine = true
    const { jump } = payment
    const jumpRefused = jump === undefined ? undefined : checkJump(payment, jump, view, draft.jumps)
    if (jumpRefused !== undefined) return jumpRefused
    // The root is the payer's word. A checkpoint that it does not prove as it passes could be a false one, from which it
    // would settle by itself and leave the desk with elements that walk down to nothing.
    const checkpoint = Math.floor(payment.position / CHECKPOINT_EVERY)
    if (jump === undefined && checkpoint > Math.floor(tab.tip / CHECKPOINT_EVERY)) {
      if (draft.storeIsFresh) return refusals.jumpDue(checkpoint, placeOf(tab, window))
      // Another server may have had it proven, with a later payment of the window.
      draft.wantsStore = true
      return undefined
    }

    const needed = tab.sold + steps
    const left = view.record.lastPulse - this.line.pulseOf(view, draft)
    if (needed > view.affordable || left < margin) {
      if (!draft.ledgerIsFresh) {
        draft.wantsLedger.push(this)
        return undefined
      }
      const { escrow, stepValue } = view.record
      return needed > view.affordable
        ? refusals.funds(BigInt(needed) * stepValue, escrow, placeOf(tab, window))
        : refusals.expiring(left, margin, placeOf(tab, window))
    }
    return this.#take(draft, steps)
  }

  #take(draft: Draft, steps: number): Accepted {
    const { tab } = draft
    const { position, value, jump } = this.payment
    const first = position - steps + 1
    tab.use(first, position)
    if (position > tab.tip) {
      tab.tip = position
      tab.tipElement = value.slice()
    }
    if (tab.used.length > 0) tab.skipHoles(this.line.rules.depth, MAX_USED_RANGES)
    tab.oldest ??= draft.now
    if (jump !== undefined) keepJump(draft, jump)
    const ticket = new Ticket(this.line, draft.view.record.payer, first, position)
    draft.sold.push(ticket)
    draft.changed = true
    return ticket
  }

  done(): void {
    if (this.#verdict === undefined) throw new Error('a payment was neither accepted nor refused')
    this.resolve(this.#verdict)
  }

  failed(error: unknown): void {
    if (error instanceof UnknownStream) this.resolve(error.refusal)
    else this.reject(error)
  }
}

/** Keeps a checked jump, and forgets those that nothing still to be settled needs. */
function keepJump(draft: Draft, jump: Jump): void {
  const { tab } = draft
  const served = tab.sold - tab.flying - draft.sold.reduce((steps, { first, position }) => steps + position - first + 1, 0)
  const lowest = Math.floor(served / CHECKPOINT_EVERY)
  if (jump.index < lowest || draft.jumps.some(({ index }) => index === jump.index)) return
  const kept = draft.jumps.filter(({ index }) => index >= lowest)
  kept.push({ index: jump.index, path: jump.path.map((node) => node.slice()) })
  kept.sort((a, b) => a.index - b.index)
  // The lowest serve next; the highest is the one that its payer takes for known and does not send again.
  draft.jumps = kept.length <= MAX_JUMPS ? kept : [...kept.slice(0, MAX_JUMPS - 1), ...kept.slice(-1)]
  draft.jumpsChanged = true
}

/** Steps whose handler failed: unused again. */
export class ReturnWork implements Work {
  constructor(
    readonly ticket: Ticket,
    readonly resolve: () => void,
  ) {}

  apply(draft: Draft): void {
    draft.returned.push(this.ticket)
    draft.changed = true
    const { tab } = draft
    const { first, position, line } = this.ticket
    // Counted as served meanwhile, or even paid for by the ledger: then they stay used.
    if (this.ticket.lost || tab.sold - (position - first + 1) < tab.settled) return
    tab.unuse(first, position)
    tab.skipHoles(line.rules.depth, MAX_USED_RANGES)
  }

  done(): void {
    this.resolve()
  }

  failed(): void {
    this.ticket.line.giveBack(this.ticket)
    this.resolve()
  }
}

/** Writes what happened in memory only: finished handlers, a lease to renew, steps that a failed write may have sold. */
export class TouchWork implements Work {
  constructor(readonly settle: (error?: unknown) => void) {}

  apply(draft: Draft): void {
    draft.changed = true
  }

  done(): void {
    this.settle()
  }

  failed(error: unknown): void {
    this.settle(error)
  }
}

/** What can be settled now. Steps that a dead server left in flight count as served from here on. */
export class PlanWork implements Work {
  #plan: SettlePlan | undefined

  constructor(
    readonly line: StreamLine,
    readonly resolve: (plan: SettlePlan | undefined) => void,
    readonly reject: (error: unknown) => void,
  ) {}

  apply(draft: Draft): void {
    if (!draft.storeIsFresh) {
      draft.wantsStore = true
      return
    }
    const { tab, view } = draft
    if (tab.expire(draft.now, this.line.owner)) draft.changed = true
    const served = tab.sold - this.line.flying(draft)
    // Nothing is unsettled and it is still in the queue: the write takes it out.
    if (tab.sold <= tab.settled && tab.due !== undefined) draft.changed = true
    this.#plan = planOf(tab, view, served, draft.jumps, draft.now)
  }

  done(): void {
    this.resolve(this.#plan)
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}

/** The ledger settled up to a position. */
export class SettledWork implements Work {
  constructor(
    readonly position: number,
    /** When the plan was made. */
    readonly at: number,
    readonly resolve: () => void,
    readonly reject: (error: unknown) => void,
  ) {}

  apply(draft: Draft): void {
    const { tab } = draft
    if (this.position > tab.sold) {
      // Further than this tab: the record says how, and has the element.
      if (!draft.ledgerIsFresh) draft.wantsLedger.push(this)
      return
    }
    if (this.position <= tab.settled) return
    tab.settled = this.position
    tab.oldest = this.at
    draft.changed = true
  }

  done(): void {
    this.resolve()
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}

/** From here on nothing is accepted. */
export class ClosingWork implements Work {
  constructor(
    readonly resolve: () => void,
    readonly reject: (error: unknown) => void,
  ) {}

  apply(draft: Draft): void {
    if (draft.tab.closing) return
    draft.tab.closing = true
    draft.changed = true
  }

  done(): void {
    this.resolve()
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}
