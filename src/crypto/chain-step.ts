/**
 * The step of a payment chain (docs/protocol.md §11): `e(i−1) = SHA-256(salt16 ‖ u32be(i) ‖ e(i))`.
 *
 * 52 bytes of message and 9 of padding are one block, so a step is one compression (FIPS 180-4 §6.2.2). A general
 * SHA-256 spends six times that on its calls and buffers; this one keeps the message schedule in one array and allocates
 * nothing. Not constant-time: chain elements are compared and revealed in the open, and the payer's walk takes the same
 * path for every secret (no branch and no table index depends on one).
 */

/** Bytes of an element. */
export const ELEMENT_LENGTH = 32
/** Bytes of a chain's salt. */
export const SALT_LENGTH = 16
/** The longest chain: a position is a u32. */
export const MAX_POSITION = 2 ** 32 - 1
/** Every 64th element is a checkpoint. */
export const CHECKPOINT_EVERY = 64

/** Walks one chain's elements down. Bound to a salt; holds no element. */
export interface ChainWalker {
  /**
   * e(to) of `value` = e(from), in `from − to` steps; `from` = `to` copies. Writes into `out` (which may be `value`), or
   * into 32 fresh bytes. Throws RangeError unless 0 ≤ to ≤ from ≤ 2^32 − 1 and both arrays hold 32 bytes.
   */
  down(value: Uint8Array, from: number, to: number, out?: Uint8Array): Uint8Array
  /** Whether `value` = e(from) walks down to `expected` = e(to). Same limits as {@link down}. */
  reaches(value: Uint8Array, from: number, expected: Uint8Array, to: number): boolean
}

// First 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4 §4.2.2).
const K = new Int32Array(64)
// … and of the square roots of the first eight (§5.3.3).
const H = new Int32Array(8)
fillConstants()

// One schedule for every walker: a step runs to its end before anything else can use it.
const W = new Int32Array(64)
const state = new Int32Array(8)

/** @throws RangeError unless the salt is 16 bytes. */
export function createWalker(salt: Uint8Array): ChainWalker {
  if (salt.length !== SALT_LENGTH) throw new RangeError(`a chain's salt is 16 bytes, not ${salt.length}`)
  const s0 = word(salt, 0)
  const s1 = word(salt, 4)
  const s2 = word(salt, 8)
  const s3 = word(salt, 12)

  function walk(value: Uint8Array, from: number, to: number): void {
    checkWalk(value, from, to)
    for (let i = 0; i < 8; i++) state[i] = word(value, 4 * i)
    for (let position = from; position > to; position--) {
      W[0] = s0
      W[1] = s1
      W[2] = s2
      W[3] = s3
      W[4] = position
      compress()
    }
  }

  return {
    down(value, from, to, out = new Uint8Array(ELEMENT_LENGTH)) {
      if (out.length !== ELEMENT_LENGTH) throw new RangeError(`an element is 32 bytes, not ${out.length}`)
      walk(value, from, to)
      for (let i = 0; i < 8; i++) putWord(out, 4 * i, state[i]!)
      return out
    },
    reaches(value, from, expected, to) {
      if (expected.length !== ELEMENT_LENGTH) throw new RangeError(`an element is 32 bytes, not ${expected.length}`)
      walk(value, from, to)
      for (let i = 0; i < 8; i++) if (state[i] !== word(expected, 4 * i)) return false
      return true
    },
  }
}

/** e(to) of `value` = e(from): {@link ChainWalker.down} for a walk that stands alone. */
export function walkDown(salt: Uint8Array, from: number, value: Uint8Array, to: number): Uint8Array {
  return createWalker(salt).down(value, from, to)
}

/** Leaves of the checkpoint tree of a chain of `length` elements: e(64), e(128), … */
export function checkpointCount(length: number): number {
  return Math.floor(length / CHECKPOINT_EVERY)
}

/**
 * The entry of checkpoint `index` (from 1; e(64 × index)) in the RFC 9162 tree, where it is leaf number `index − 1`:
 * u32be(index) ‖ element. 36 bytes, which neither a step (52) nor a node (64) can be mistaken for.
 */
export function checkpointEntry(index: number, element: Uint8Array): Uint8Array {
  const entry = new Uint8Array(4 + ELEMENT_LENGTH)
  putWord(entry, 0, index)
  entry.set(element, 4)
  return entry
}

/** `state` becomes the digest of W[0…4] ‖ state, a message of 52 bytes. */
function compress(): void {
  for (let i = 0; i < 8; i++) W[5 + i] = state[i]!
  W[13] = 0x80000000
  W[14] = 0
  W[15] = 416
  for (let t = 16; t < 64; t++) {
    const x = W[t - 15]!
    const y = W[t - 2]!
    W[t] =
      (W[t - 16]! +
        (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) +
        W[t - 7]! +
        (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10))) |
      0
  }
  let a = H[0]!
  let b = H[1]!
  let c = H[2]!
  let d = H[3]!
  let e = H[4]!
  let f = H[5]!
  let g = H[6]!
  let h = H[7]!
  for (let t = 0; t < 64; t++) {
    const t1 =
      (h +
        (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7))) +
        ((e & f) ^ (~e & g)) +
        K[t]! +
        W[t]!) |
      0
    const t2 =
      ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  state[0] = a + H[0]!
  state[1] = b + H[1]!
  state[2] = c + H[2]!
  state[3] = d + H[3]!
  state[4] = e + H[4]!
  state[5] = f + H[5]!
  state[6] = g + H[6]!
  state[7] = h + H[7]!
}

function checkWalk(value: Uint8Array, from: number, to: number): void {
  if (value.length !== ELEMENT_LENGTH) throw new RangeError(`an element is 32 bytes, not ${value.length}`)
  if (!Number.isInteger(from) || !Number.isInteger(to) || to < 0 || to > from || from > MAX_POSITION) {
    throw new RangeError(`a walk goes down between positions 0 and ${MAX_POSITION}, not from ${from} to ${to}`)
  }
}

function word(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

function putWord(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24
  bytes[at + 1] = value >>> 16
  bytes[at + 2] = value >>> 8
  bytes[at + 3] = value
}

/** Computed rather than typed in: 72 numbers that nobody would proofread. Doubles carry 53 bits, which is enough here. */
function fillConstants(): void {
  const fraction = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) | 0
  let found = 0
  for (let candidate = 2; found < 64; candidate++) {
    let prime = true
    for (let divisor = 2; divisor * divisor <= candidate; divisor++) if (candidate % divisor === 0) prime = false
    if (!prime) continue
    if (found < 8) H[found] = fraction(Math.sqrt(candidate))
    K[found++] = fraction(Math.cbrt(candidate))
  }
}
