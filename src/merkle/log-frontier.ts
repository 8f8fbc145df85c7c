import { InputError } from '../codec/errors.js'
import { requireHash, type Hash } from './hash32.js'
import { EMPTY_LOG_ROOT, nodeHash } from './log-tree.js'

/**
 * As much of a growing log (RFC 9162 §2.1) as appending to it takes: how many leaves it has, and the roots of the complete
 * subtrees that they make up, the largest first. A state object holds a whole log in 2 kB at most, and whoever has that
 * object can check the next root without a single leaf.
 */
export interface LogFrontier {
  readonly size: number
  /** One for each bit that is set in `size`. */
  readonly peaks: readonly Hash[]
}

/** The log with one more leaf, given as its leaf hash. */
export function appendLeaf({ size, peaks }: LogFrontier, leaf: Hash): LogFrontier {
  if (size >= Number.MAX_SAFE_INTEGER) throw new InputError('size', 'the log is full')
  const grown = peaks.slice()
  let node = requireHash(leaf, 'leaf')
  // As many subtrees close as the size has ones at its end.
  for (let rest = size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
    const left = grown.pop()
    if (left === undefined) throw new InputError('peaks', `${peaks.length} peaks for a log of ${size}`)
    node = nodeHash(requireHash(left, 'peak'), node)
  }
  return { size: size + 1, peaks: [...grown, node] }
}

/** The RFC's root of all leaves. */
export function frontierRoot({ peaks }: LogFrontier): Hash {
  return peaks.reduceRight<Hash | undefined>((right, left) => (right === undefined ? left : nodeHash(left, right)), undefined) ?? EMPTY_LOG_ROOT
}

/** How many peaks a log of `size` leaves has: the ones in its binary form. */
export function peakCount(size: number): number {
  let count = 0
  for (let rest = size; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2
  return count
}
