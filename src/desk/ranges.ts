/**
 * Sets of positions as flat, ascending arrays `[first, last, first, last, …]`, disjoint and not adjacent: the one way
 * to write a set. Values, not objects: a function returns a new array and leaves its input alone.
 */
export type Ranges = readonly number[]

export const NO_RANGES: Ranges = []

/** Number of positions. */
export function sizeOf(ranges: Ranges): number {
  let size = 0
  for (let at = 0; at < ranges.length; at += 2) size += ranges[at + 1]! - ranges[at]! + 1
  return size
}

/** Whether any position from `first` to `last` is in the set. */
export function overlaps(ranges: Ranges, first: number, last: number): boolean {
  for (let at = 0; at < ranges.length; at += 2) {
    if (ranges[at]! > last) return false
    if (ranges[at + 1]! >= first) return true
  }
  return false
}

/** Whether every position from `first` to `last` is in the set. */
export function covers(ranges: Ranges, first: number, last: number): boolean {
  for (let at = 0; at < ranges.length; at += 2) if (ranges[at]! <= first && last <= ranges[at + 1]!) return true
  return false
}

/** With `first` to `last` added. */
export function add(ranges: Ranges, first: number, last: number): Ranges {
  const result: number[] = []
  let from = first
  let to = last
  let placed = false
  for (let at = 0; at < ranges.length; at += 2) {
    const start = ranges[at]!
    const end = ranges[at + 1]!
    if (end + 1 < from) {
      result.push(start, end)
    } else if (to + 1 < start) {
      if (!placed) result.push(from, to)
      placed = true
      result.push(start, end)
    } else {
      from = Math.min(from, start)
      to = Math.max(to, end)
    }
  }
  if (!placed) result.push(from, to)
  return result
}

/** Without `first` to `last`. */
export function without(ranges: Ranges, first: number, last: number): Ranges {
  const result: number[] = []
  for (let at = 0; at < ranges.length; at += 2) {
    const start = ranges[at]!
    const end = ranges[at + 1]!
    if (start < first) result.push(start, Math.min(end, first - 1))
    if (end > last) result.push(Math.max(start, last + 1), end)
  }
  return result
}

/** The lowest `first` above `floor` from which `size` positions are all outside the set. */
export function lowestGap(ranges: Ranges, floor: number, size: number): number {
  let first = floor + 1
  for (let at = 0; at < ranges.length; at += 2) {
    if (ranges[at]! - first >= size) return first
    first = ranges[at + 1]! + 1
  }
  return first
}

/** What from `first` to `last` is outside the set, as pairs. */
export function gaps(ranges: Ranges, first: number, last: number): [first: number, last: number][] {
  const result: [number, number][] = []
  let from = first
  for (let at = 0; at < ranges.length && from <= last; at += 2) {
    if (ranges[at]! > from) result.push([from, Math.min(ranges[at]! - 1, last)])
    from = Math.max(from, ranges[at + 1]! + 1)
  }
  if (from <= last) result.push([from, last])
  return result
}

/** What is in both sets. */
export function intersection(one: Ranges, other: Ranges): Ranges {
  const result: number[] = []
  for (let at = 0; at < one.length; at += 2) {
    for (const [first, last] of pairs(other)) {
      const from = Math.max(one[at]!, first)
      const to = Math.min(one[at + 1]!, last)
      if (from <= to) result.push(from, to)
    }
  }
  return result
}

/** The ranges of a set, one by one. */
export function pairs(ranges: Ranges): [first: number, last: number][] {
  const result: [number, number][] = []
  for (let at = 0; at < ranges.length; at += 2) result.push([ranges[at]!, ranges[at + 1]!])
  return result
}
