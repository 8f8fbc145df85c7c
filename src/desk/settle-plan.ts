import { CHECKPOINT_EVERY } from '../crypto/chain-step.js'
import { WALK_LIMIT } from '../ledger/index.js'
import type { Jump, SettleItem } from './stream-ledger.js'
import type { StreamView } from './stream-view.js'
import type { Tab } from './tab.js'

/** What to settle of one stream, and the hashes it costs the ledger. */
export interface SettlePlan {
  readonly item: SettleItem
  readonly hashes: number
  /** Where it starts from: what the tab says is settled already. */
  readonly settled: number
  /** Served steps that it leaves: beyond what one walk or jump reaches. */
  readonly rest: number
  /** When it was made: steps sold later are not in it. */
  readonly at: number
}

/** How far to settle and by which way; undefined when there is nothing. */
export interface Way {
  readonly position: number
  readonly hashes: number
  readonly jump?: Jump
}

/**
 * The way that covers most of `served` beyond `settled`: a jump where it covers more steps than a walk may, or the same
 * steps for fewer hashes. A checkpoint that is not kept leaves the walk, limited as it is: the rest follows.
 */
export function bestWay(settled: number, served: number, jumps: readonly Jump[]): Way | undefined {
  if (served <= settled) return undefined
  const walk = Math.min(served, settled + WALK_LIMIT)
  let best: Way = { position: walk, hashes: walk - settled }
  for (const jump of jumps) {
    const checkpoint = jump.index * CHECKPOINT_EVERY
    if (checkpoint <= settled || checkpoint > served) continue
    const position = Math.min(served, checkpoint + CHECKPOINT_EVERY - 1)
    const hashes = position - checkpoint + jump.path.length + 1
    if (position > best.position || (position === best.position && hashes < best.hashes)) {
      best = { position, hashes, jump }
    }
  }
  return best
}

/** The plan for what of a tab was served. */
export function planOf(tab: Tab, view: StreamView, served: number, jumps: readonly Jump[], at: number): SettlePlan | undefined {
  const way = bestWay(tab.settled, served, jumps)
  if (way === undefined) return undefined
  const { position, hashes, jump } = way
  const element = view.walker.down(tab.tipElement, tab.tip, position)
  return {
    item: { stream: view.record.id, position, element, ...(jump === undefined ? {} : { jump }) },
    hashes,
    settled: tab.settled,
    rest: served - position,
    at,
  }
}
