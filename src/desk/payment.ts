import type { Id } from '../codec/index.js'
import { CHECKPOINT_EVERY, checkpointEntry, ELEMENT_LENGTH, MAX_POSITION } from '../crypto/chain-step.js'
import { leafHash, sameHash, verifyInclusion } from '../merkle/index.js'
import { gaps, overlaps } from './ranges.js'
import { refusals, type Refusal } from './refusal.js'
import type { Jump } from './stream-ledger.js'
import { pathLength, type StreamView } from './stream-view.js'
import type { Tab } from './tab.js'

/** A stream payment as it came off the wire, decoded. The desk checks every number and length again. */
export interface StreamPayment {
  readonly stream: Id
  /** The last step this payment covers. */
  readonly position: number
  /** e(position), 32 bytes. */
  readonly value: Uint8Array
  /** Of the highest checkpoint up to `position`, on the first payment past it. */
  readonly jump?: Jump
  /** The client takes refusals with a window: its requests may arrive in any order. */
  readonly window?: boolean
}

/** What the payment alone shows, before anything is looked up. */
export function checkShape({ position, value, jump }: StreamPayment): Refusal | undefined {
  if (!Number.isSafeInteger(position) || position < 1 || position > MAX_POSITION) return refusals.position(position)
  if (!(value instanceof Uint8Array) || value.length !== ELEMENT_LENGTH) return refusals.value(value.length)
  if (jump === undefined) return undefined
  if (!Number.isSafeInteger(jump.index) || jump.index < 1) {
    return refusals.jumpShape(`a checkpoint's index is a whole number from 1, not ${String(jump.index)}`)
  }
  if (jump.path.some((node) => node.length !== ELEMENT_LENGTH)) {
    return refusals.jumpShape("a node of a checkpoint's path is 32 bytes")
  }
  return undefined
}

/** What the payment and the stream's unchanging terms show. */
export function checkTerms(payment: StreamPayment, payee: Id, view: StreamView): Refusal | undefined {
  const { record } = view
  const { position, jump } = payment
  if (record.payee !== payee) return refusals.payee(record.payee, payee)
  if (record.asset !== 'USD') return refusals.asset(record.asset)
  if (record.state !== 'open') return refusals.closed()
  if (position > record.length) return refusals.end(position, record.length)
  if (jump === undefined) return undefined
  if (jump.index > view.checkpoints) return refusals.jumpPastEnd(jump.index, view.checkpoints)
  if (jump.index !== Math.floor(position / CHECKPOINT_EVERY)) return refusals.jumpIndex(jump.index, position)
  const expected = pathLength(view.checkpoints, jump.index - 1)
  return jump.path.length === expected ? undefined : refusals.jumpPathLength(jump.path.length, expected)
}

/**
 * Whether the steps are the right ones. Without a window exactly the lowest unused ones; with it any unused ones up to
 * `window` above the floor. Costs no hash, and bounds those of {@link isGenuine}.
 */
export function checkPlace(payment: StreamPayment, steps: number, tab: Tab, window: number): Refusal | undefined {
  const { position } = payment
  const first = position - steps + 1
  const lowest = tab.lowestUnused(steps)
  if (first === lowest) return undefined
  if (window === 0 || payment.window !== true) {
    return refusals.wrongPosition(lowest + steps - 1, position, { position: lowest - 1 })
  }
  // Where holes are narrower than the price, the lowest fitting steps are good wherever they lie.
  const limit = Math.max(tab.floor + window, lowest + steps - 1)
  if (position > limit) return refusals.ahead(position, limit, placeOf(tab, window))
  if (first <= tab.floor || overlaps(tab.used, first, position)) {
    return refusals.used(first, position, placeOf(tab, window))
  }
  return undefined
}

/** What a refusal tells about a tab. */
export function placeOf(tab: Tab, window: number): NonNullable<Pick<Refusal, 'floor' | 'unused'>> & { position: number } {
  const position = tab.lowestUnused(1) - 1
  return window === 0
    ? { position }
    : { position, floor: tab.floor, unused: gaps(tab.used, tab.floor + 1, tab.floor + window) }
}

/** Whether the element is the stream's: it walks down to the highest one seen, or lies below that one. */
export function isGenuine({ position, value }: StreamPayment, view: StreamView, tab: Tab): boolean {
  if (position > tab.tip) return view.walker.reaches(value, position, tab.tipElement, tab.tip)
  return sameHash(position === tab.tip ? tab.tipElement : view.walker.down(tab.tipElement, tab.tip, position), value)
}

/** A genuine payment's jump against the stream's root, or against the same one checked before. */
export function checkJump(
  payment: StreamPayment,
  jump: Jump,
  view: StreamView,
  kept: readonly Jump[],
): Refusal | undefined {
  const known = kept.find(({ index }) => index === jump.index)
  if (known !== undefined) {
    return known.path.every((node, at) => sameHash(node, jump.path[at]!)) ? undefined : refusals.jump(jump.index)
  }
  const element = view.walker.down(payment.value, payment.position, jump.index * CHECKPOINT_EVERY)
  const leaf = leafHash(checkpointEntry(jump.index, element))
  return verifyInclusion(view.record.checkpointRoot, view.checkpoints, jump.index - 1, leaf, jump.path)
    ? undefined
    : refusals.jump(jump.index)
}
