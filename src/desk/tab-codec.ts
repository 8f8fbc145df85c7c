import { InputError, toHex, fromHex } from '../codec/index.js'
import { ELEMENT_LENGTH, MAX_POSITION } from '../crypto/chain-step.js'
import { NO_RANGES, sizeOf, type Ranges } from './ranges.js'
import type { Jump } from './stream-ledger.js'
import { TAB_FORMAT, TAB_PREFIX_LENGTH, newerFormat, versionOf, writePrefix } from './store.js'
import { Tab, type InFlight } from './tab.js'

/*
 * Big-endian, every number of fixed width; the prefix (format, version) is store.ts's.
 *
 *   tab       prefix 9 · flags 1 (bit 0: closing) · settled 4 · floor 4 · skipped 4 · tip 4 · tipElement 32
 *             · oldest 8 (0 none, else + 1) · due at 8 (as oldest) · due Pulse 8 · used: ranges · servers 1 · in flight: (owner 8 · until 8 · ranges)…
 *   ranges    count 2 · (first 4 · last 4)…
 *   jumps     format 1 · count 2 · (index 4 · nodes 1 · node 32…)…
 *
 * Canonical: one tab has one encoding, and decoding refuses anything else.
 */

const FIXED = TAB_PREFIX_LENGTH + 1 + 4 * 4 + ELEMENT_LENGTH + 3 * 8
const OWNER_LENGTH = 8
const MAX_SERVERS = 255
const MAX_RANGES = 65_535

export function encodeTab(tab: Tab): Uint8Array {
  let length = FIXED + 2 + 4 * tab.used.length + 1
  for (const held of tab.inFlight) length += OWNER_LENGTH + 8 + 2 + 4 * held.ranges.length
  if (tab.inFlight.length > MAX_SERVERS) throw new RangeError(`${tab.inFlight.length} servers on one stream`)
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer)
  writePrefix(view, tab.version)
  view.setUint8(9, tab.closing ? 1 : 0)
  view.setUint32(10, tab.settled)
  view.setUint32(14, tab.floor)
  view.setUint32(18, tab.skipped)
  view.setUint32(22, tab.tip)
  bytes.set(tab.tipElement, 26)
  setNumber(view, 58, tab.oldest === undefined ? 0 : tab.oldest + 1)
  setNumber(view, 66, tab.due === undefined ? 0 : tab.due.at + 1)
  setNumber(view, 74, tab.due === undefined ? 0 : tab.due.pulse)
  let at = putRanges(view, FIXED, tab.used)
  view.setUint8(at++, tab.inFlight.length)
  for (const held of tab.inFlight) {
    bytes.set(fromHex(held.owner, 'owner', OWNER_LENGTH), at)
    setNumber(view, at + OWNER_LENGTH, held.until)
    at = putRanges(view, at + OWNER_LENGTH + 8, held.ranges)
  }
  return bytes
}

/**
 * @throws SionError `store_newer_format`; InputError for anything that {@link encodeTab} does not write.
 */
export function decodeTab(bytes: Uint8Array): Tab {
  const version = versionOf(bytes)
  const read = new Reader(bytes, 'tab', TAB_PREFIX_LENGTH)
  const flags = read.u8()
  const settled = read.u32()
  const floor = read.u32()
  const skipped = read.u32()
  const tip = read.u32()
  const tab = new Tab(read.bytes(ELEMENT_LENGTH))
  tab.version = version
  tab.closing = flags === 1
  tab.settled = settled
  tab.floor = floor
  tab.skipped = skipped
  tab.tip = tip
  const oldest = read.u53()
  const dueAt = read.u53()
  const duePulse = read.u53()
  if (oldest > 0) tab.oldest = oldest - 1
  if (dueAt > 0) tab.due = { at: dueAt - 1, pulse: duePulse }
  else if (duePulse > 0) throw read.wrong('a due Pulse without a due time')
  tab.used = read.ranges()
  const inFlight: InFlight[] = []
  for (let left = read.u8(); left > 0; left--) {
    const owner = toHex(read.bytes(OWNER_LENGTH))
    const until = read.u53()
    const ranges = read.ranges()
    const before = inFlight.at(-1)
    if (ranges.length === 0 || (before !== undefined && before.owner >= owner)) throw read.wrong('servers out of order')
    inFlight.push({ owner, until, ranges })
  }
  tab.inFlight = inFlight
  read.end()
  if (flags > 1) throw read.wrong(`unknown flags ${flags}`)
  if (version === 0 || tab.sold < 0 || floor > tip || (tab.used[0] ?? MAX_POSITION) <= floor || (tab.used.at(-1) ?? 0) > tip) {
    throw read.wrong('its numbers contradict each other')
  }
  return tab
}

export function encodeJumps(jumps: readonly Jump[]): Uint8Array {
  let length = 3
  for (const jump of jumps) length += 5 + ELEMENT_LENGTH * jump.path.length
  const bytes = new Uint8Array(length)
  const view = new DataView(bytes.buffer)
  view.setUint8(0, TAB_FORMAT)
  view.setUint16(1, jumps.length)
  let at = 3
  for (const { index, path } of jumps) {
    view.setUint32(at, index)
    view.setUint8(at + 4, path.length)
    at += 5
    for (const node of path) {
      bytes.set(node, at)
      at += ELEMENT_LENGTH
    }
  }
  return bytes
}

/** Of no bytes: no jumps. Same errors as {@link decodeTab}. */
export function decodeJumps(bytes: Uint8Array): Jump[] {
  if (bytes.length === 0) return []
  const read = new Reader(bytes, 'jumps', 0)
  const format = read.u8()
  if (format > TAB_FORMAT) throw newerFormat(format)
  if (format !== TAB_FORMAT) throw read.wrong(`unknown format ${format}`)
  const jumps: Jump[] = []
  for (let left = read.u16(); left > 0; left--) {
    const index = read.u32()
    const path: Uint8Array[] = []
    for (let nodes = read.u8(); nodes > 0; nodes--) path.push(read.bytes(ELEMENT_LENGTH))
    if (index <= (jumps.at(-1)?.index ?? 0)) throw read.wrong('checkpoints out of order')
    jumps.push({ index, path })
  }
  read.end()
  return jumps
}

function setNumber(view: DataView, at: number, value: number): void {
  view.setUint32(at, Math.floor(value / 2 ** 32))
  view.setUint32(at + 4, value % 2 ** 32)
}

function putRanges(view: DataView, start: number, ranges: Ranges): number {
  if (ranges.length > 2 * MAX_RANGES) throw new RangeError(`${ranges.length / 2} ranges in one tab`)
  view.setUint16(start, ranges.length / 2)
  let at = start + 2
  for (const edge of ranges) {
    view.setUint32(at, edge)
    at += 4
  }
  return at
}

class Reader {
  readonly #view: DataView

  constructor(
    readonly source: Uint8Array,
    readonly field: string,
    private at: number,
  ) {
    this.#view = new DataView(source.buffer, source.byteOffset, source.byteLength)
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1))
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2))
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4))
  }

  u53(): number {
    const at = this.#take(8)
    const value = this.#view.getUint32(at) * 2 ** 32 + this.#view.getUint32(at + 4)
    if (!Number.isSafeInteger(value)) throw this.wrong('a number above 2^53 − 1')
    return value
  }

  bytes(length: number): Uint8Array {
    const at = this.#take(length)
    // A copy, also of a Buffer, whose own slice would share its memory.
    return new Uint8Array(this.source.subarray(at, at + length))
  }

  ranges(): Ranges {
    const count = this.u16()
    if (count === 0) return NO_RANGES
    const ranges: number[] = []
    let above = -1
    for (let left = count; left > 0; left--) {
      const first = this.u32()
      const last = this.u32()
      if (first <= above || first === 0 || last < first) throw this.wrong('ranges out of order')
      ranges.push(first, last)
      // The next one may not touch this one: two that touch are one.
      above = last + 1
    }
    if (sizeOf(ranges) > MAX_POSITION) throw this.wrong('ranges out of order')
    return ranges
  }

  end(): void {
    if (this.at !== this.source.length) throw this.wrong(`${this.source.length - this.at} bytes too many`)
  }

  wrong(problem: string): InputError {
    return new InputError(this.field, `not as this desk writes it: ${problem}`)
  }

  #take(length: number): number {
    const at = this.at
    if (at + length > this.source.length) throw this.wrong('cut short')
    this.at = at + length
    return at
  }
}
