import { formatUsd, SionError, type Id } from '../codec/index.js'
import { MAX_POSITION } from '../crypto/chain-step.js'

/** Stable codes for programs: `extensions.sion.code` of a refused stream payment (docs/streams.md lists them). */
export type RefusalCode =
  | 'invalid_position'
  | 'invalid_value'
  | 'invalid_jump'
  | 'unknown_stream'
  | 'wrong_payee'
  | 'wrong_asset'
  | 'stream_closed'
  | 'stream_closing'
  | 'price_not_whole_steps'
  | 'too_many_steps'
  | 'past_end'
  | 'wrong_position'
  | 'outside_window'
  | 'already_used'
  | 'wrong_element'
  | 'jump_due'
  | 'jump_past_end'
  | 'jump_index'
  | 'jump_path_length'
  | 'wrong_jump'
  | 'insufficient_funds'
  | 'stream_expiring'

/** Why a payment was not accepted. Nothing changed. `reason` is one line for people. */
export interface Refusal {
  readonly accepted: false
  readonly code: RefusalCode
  readonly reason: string
  /** The position accepted up to: an honest client pays from the next one. Absent where no tab was looked at. */
  readonly position?: number
  /** With a window: every step up to here was used, and these pairs above it, within the window, were not. */
  readonly floor?: number
  readonly unused?: readonly (readonly [first: number, last: number])[]
}

/** No such stream: what a line throws, so that every payment waiting for it is refused. */
export class UnknownStream extends SionError {
  constructor(readonly refusal: Refusal) {
    super(refusal.code, refusal.reason)
  }
}

interface Place {
  readonly position: number
  readonly floor?: number
  readonly unused?: readonly (readonly [number, number])[]
}

function refuse(code: RefusalCode, reason: string, place?: Place): Refusal {
  return { accepted: false, code, reason, ...place }
}

export const refusals = {
  position: (position: unknown): Refusal =>
    refuse('invalid_position', `a position is a whole number from 1 to ${MAX_POSITION}, not ${show(position)}`),
  value: (length: number): Refusal => refuse('invalid_value', `an element is 32 bytes, not ${length}`),
  jumpShape: (problem: string): Refusal => refuse('invalid_jump', problem),
  unknown: (stream: Id): Refusal => refuse('unknown_stream', `the ledger has no stream ${stream}`),
  payee: (payee: Id, expected: Id): Refusal =>
    refuse('wrong_payee', `the stream pays ${payee}, and this payment is due to ${expected}`),
  asset: (asset: string): Refusal => refuse('wrong_asset', `the stream is in ${asset}, not in USD`),
  closed: (): Refusal => refuse('stream_closed', 'the stream is closed'),
  closing: (): Refusal => refuse('stream_closing', 'the stream is being closed and takes no more payments'),
  wholeSteps: (price: bigint, step: bigint): Refusal =>
    refuse(
      'price_not_whole_steps',
      `the price, ${formatUsd(price)} USD, is not a whole number of the stream's steps of ${formatUsd(step)} USD`,
    ),
  steps: (steps: bigint, most: number): Refusal =>
    refuse('too_many_steps', `the price is ${steps} steps, and one payment may cover ${most}`),
  end: (position: number, length: number): Refusal =>
    refuse('past_end', `position ${position} is past the end of the stream at ${length}`),
  wrongPosition: (expected: number, got: number, place: Place): Refusal =>
    refuse('wrong_position', `expected the element at position ${expected}, not ${got}`, place),
  ahead: (position: number, limit: number, place: Place): Refusal =>
    refuse('outside_window', `position ${position} is ahead of the window, which ends at ${limit}`, place),
  used: (first: number, last: number, place: Place): Refusal =>
    refuse('already_used', `${first === last ? `step ${first} was` : `steps ${first} to ${last} were`} used before`, place),
  element: (position: number, place: Place): Refusal =>
    refuse('wrong_element', `the element is not the stream's at position ${position}`, place),
  jumpDue: (index: number, place: Place): Refusal =>
    refuse('jump_due', `the first payment past checkpoint ${index} carries its jump`, place),
  jumpPastEnd: (index: number, count: number): Refusal =>
    refuse('jump_past_end', `checkpoint ${index} is past the stream's last one, ${count}`),
  jumpIndex: (index: number, position: number): Refusal =>
    refuse('jump_index', `checkpoint ${index} is not the highest one up to position ${position}`),
  jumpPathLength: (length: number, expected: number): Refusal =>
    refuse('jump_path_length', `the checkpoint's path has ${length} nodes, not ${expected}`),
  jump: (index: number): Refusal => refuse('wrong_jump', `checkpoint ${index} is not proven under the stream's root`),
  funds: (needed: bigint, escrow: bigint, place: Place): Refusal =>
    refuse(
      'insufficient_funds',
      `the payment brings the stream to ${formatUsd(needed)} USD, and its escrow is ${formatUsd(escrow)} USD`,
      place,
    ),
  expiring: (left: number, margin: number, place: Place): Refusal =>
    refuse('stream_expiring', `the stream lasts ${Math.max(0, left)} more Pulses, and this seller needs ${margin}`, place),
}

function show(value: unknown): string {
  return typeof value === 'number' ? String(value) : `a ${typeof value}`
}
