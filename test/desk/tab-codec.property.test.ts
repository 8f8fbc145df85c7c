import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SionError } from '../../src/codec/index.js'
import { add, covers, gaps, intersection, lowestGap, NO_RANGES, overlaps, sizeOf, without, type Ranges } from '../../src/desk/ranges.js'
import { decodeJumps, decodeTab, encodeJumps, encodeTab } from '../../src/desk/tab-codec.js'
import { Tab } from '../../src/desk/tab.js'

const positions = fc.uniqueArray(fc.integer({ min: 1, max: 60 }), { maxLength: 40 })

function rangesOf(numbers: readonly number[]): Ranges {
  let ranges = NO_RANGES
  for (const number of numbers) ranges = add(ranges, number, number)
  return ranges
}

function numbersOf(ranges: Ranges): number[] {
  const numbers: number[] = []
  for (let at = 0; at < ranges.length; at += 2) for (let n = ranges[at]!; n <= ranges[at + 1]!; n++) numbers.push(n)
  return numbers
}

const sorted = (numbers: Iterable<number>): number[] => [...numbers].sort((a, b) => a - b)
const span = fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 0, max: 15 })).map(([first, more]) => [first, first + more] as const)

describe('ranges', () => {
  it('are the sets they stand for', () => {
    fc.assert(
      fc.property(positions, positions, span, fc.integer({ min: 1, max: 5 }), (some, others, [first, last], size) => {
        const set = new Set(some)
        const ranges = rangesOf(some)
        const inside = Array.from({ length: last - first + 1 }, (_, at) => first + at)
        expect(numbersOf(ranges)).toEqual(sorted(set))
        expect(sizeOf(ranges)).toBe(set.size)
        expect(numbersOf(add(ranges, first, last))).toEqual(sorted(new Set([...some, ...inside])))
        expect(numbersOf(without(ranges, first, last))).toEqual(sorted(some.filter((n) => n < first || n > last)))
        expect(overlaps(ranges, first, last)).toBe(inside.some((n) => set.has(n)))
        expect(covers(ranges, first, last)).toBe(inside.every((n) => set.has(n)))
        expect(numbersOf(gaps(ranges, first, last).flat())).toEqual(inside.filter((n) => !set.has(n)))
        expect(numbersOf(intersection(ranges, rangesOf(others)))).toEqual(sorted(some.filter((n) => others.includes(n))))
        const gap = lowestGap(ranges, 0, size)
        const free = (from: number) => Array.from({ length: size }, (_, at) => from + at).every((n) => !set.has(n))
        expect(free(gap)).toBe(true)
        for (let from = 1; from < gap; from++) expect(free(from)).toBe(false)
      }),
      { numRuns: 500 },
    )
  })
})

const hex = fc.uint8Array({ minLength: 8, maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const whole = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER - 1 })

const tabs = fc
  .record({
    version: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    closing: fc.boolean(),
    settled: fc.nat(1_000),
    floor: fc.nat(1_000),
    used: positions,
    element: fc.uint8Array({ minLength: 32, maxLength: 32 }),
    oldest: fc.option(whole, { nil: undefined }),
    due: fc.option(fc.record({ at: whole, pulse: whole }), { nil: undefined }),
    servers: fc.uniqueArray(fc.record({ owner: hex, until: whole, steps: positions.filter(({ length }) => length > 0) }), {
      maxLength: 4,
      selector: ({ owner }) => owner,
    }),
  })
  .map((parts) => {
    const tab = new Tab(parts.element)
    tab.version = parts.version
    tab.closing = parts.closing
    tab.settled = parts.settled
    tab.floor = parts.floor
    tab.used = rangesOf(parts.used.map((n) => n + parts.floor + 1))
    tab.tip = parts.floor + 62
    tab.skipped = Math.floor(parts.floor / 3)
    tab.oldest = parts.oldest
    tab.due = parts.due
    for (const { owner, until, steps } of parts.servers) tab.setInFlight(owner, until, rangesOf(steps))
    return tab
  })

const jumps = fc
  .uniqueArray(fc.record({ index: fc.integer({ min: 1, max: 2 ** 32 - 1 }), nodes: fc.nat(20) }), { selector: ({ index }) => index, maxLength: 8 })
  .map((list) =>
    list
      .sort((a, b) => a.index - b.index)
      .map(({ index, nodes }) => ({ index, path: Array.from({ length: nodes }, (_, at) => new Uint8Array(32).fill(at)) })),
  )

/** Decoding either gives something that encodes back to the same bytes, or fails with an error of ours. */
function canonical(bytes: Uint8Array, decodeAndEncode: (bytes: Uint8Array) => Uint8Array): void {
  try {
    expect(decodeAndEncode(bytes)).toEqual(bytes)
  } catch (error) {
    if (!(error instanceof SionError)) throw error
  }
}

describe('a stored tab', () => {
  it('comes back as it was', () => {
    fc.assert(
      fc.property(tabs, (tab) => {
        expect(decodeTab(encodeTab(tab))).toEqual(tab)
      }),
      { numRuns: 300 },
    )
    fc.assert(
      fc.property(jumps, (list) => {
        expect(decodeJumps(encodeJumps(list))).toEqual(list)
      }),
      { numRuns: 200 },
    )
  })

  it('has one encoding: what else is read is refused by name', () => {
    fc.assert(
      fc.property(tabs, fc.nat(), fc.integer({ min: 1, max: 255 }), (tab, place, flip) => {
        const bytes = encodeTab(tab)
        const broken = bytes.slice()
        broken[place % bytes.length]! ^= flip
        canonical(broken, (input) => encodeTab(decodeTab(input)))
        canonical(bytes.subarray(0, place % bytes.length), (input) => encodeTab(decodeTab(input)))
        expect(() => decodeTab(new Uint8Array([...bytes, 0]))).toThrow(SionError)
      }),
      { numRuns: 1_000 },
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        canonical(bytes, (input) => encodeTab(decodeTab(input)))
        canonical(bytes, (input) => (input.length === 0 ? input : encodeJumps(decodeJumps(input))))
        canonical(new Uint8Array([1, ...bytes]), (input) => encodeJumps(decodeJumps(input)))
      }),
      { numRuns: 1_000 },
    )
  })

  it('of a newer format is refused with a message that says so', () => {
    const bytes = encodeTab(Object.assign(new Tab(new Uint8Array(32)), { version: 1 }))
    bytes[0] = 2
    expect(() => decodeTab(bytes)).toThrow(expect.objectContaining({ code: 'store_newer_format', message: expect.stringContaining('format 2') }))
    expect(() => decodeJumps(Uint8Array.of(9, 0, 0))).toThrow(expect.objectContaining({ code: 'store_newer_format' }))
  })
})
