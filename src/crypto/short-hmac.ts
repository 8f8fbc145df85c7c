/**
 * HMAC-SHA256 (RFC 2104, FIPS 180-4) for short messages under one key, in plain JavaScript. The key's two blocks are hashed
 * once and nothing is allocated for each message: answering an unpaid request costs one of these, and Node's own, with
 * its objects to collect, costs several times as much as hashing these few blocks. No branch and no index depends on key
 * or message; that engines keep it so is not promised.
 */
export interface ShortHmac {
  /** The HMAC of the first `length` bytes: 32 bytes which the next call of any such function overwrites. */
  (message: Uint8Array, length: number): Uint8Array
}

const BLOCK = 64

// Of the first primes (FIPS 180-4 §4.2.2, §5.3.3).
const K = new Int32Array(64)
const H = new Int32Array(8)
fillConstants()

// Shared by every key: an HMAC runs to its end before another can begin.
const W = new Int32Array(64)
const state = new Int32Array(8)
const last = new Uint8Array(2 * BLOCK)
const digest = new Uint8Array(32)

export function shortHmac(key: Uint8Array): ShortHmac {
  if (key.length > BLOCK) throw new RangeError(`a key of ${key.length} bytes is over ${BLOCK}`)
  const inner = stateAfter(key, 0x36)
  const outer = stateAfter(key, 0x5c)

  return (message, length) => {
    hashRest(inner, message, length)
    writeDigest()
    hashRest(outer, digest, digest.length)
    writeDigest()
    return digest
  }
}

/** The state after the key's block, each of its bytes XOR `pad`. */
function stateAfter(key: Uint8Array, pad: number): Int32Array {
  const block = new Uint8Array(BLOCK).fill(pad)
  for (let i = 0; i < key.length; i++) block[i]! ^= key[i]!
  state.set(H)
  compress(block, 0)
  return state.slice()
}

/** Leaves in `state` the hash of a block that led to `from` and a message after it. */
function hashRest(from: Int32Array, message: Uint8Array, length: number): void {
  state.set(from)
  const whole = length - (length % BLOCK)
  for (let at = 0; at < whole; at += BLOCK) compress(message, at)
  const rest = length - whole
  for (let i = 0; i < rest; i++) last[i] = message[whole + i]!
  const end = rest + 9 > BLOCK ? 2 * BLOCK : BLOCK
  last.fill(0, rest, end)
  last[rest] = 0x80
  const bits = (BLOCK + length) * 8
  putWord(last, end - 8, Math.floor(bits / 2 ** 32))
  putWord(last, end - 4, bits)
  compress(last, 0)
  if (end > BLOCK) compress(last, BLOCK)
}

/** One block into `state` (FIPS 180-4 §6.2.2). */
function compress(bytes: Uint8Array, at: number): void {
  for (let t = 0; t < 16; t++) {
    const i = at + 4 * t
    W[t] = (bytes[i]! << 24) | (bytes[i + 1]! << 16) | (bytes[i + 2]! << 8) | bytes[i + 3]!
  }
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
  let a = state[0]!
  let b = state[1]!
  let c = state[2]!
  let d = state[3]!
  let e = state[4]!
  let f = state[5]!
  let g = state[6]!
  let h = state[7]!
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
  state[0]! += a
  state[1]! += b
  state[2]! += c
  state[3]! += d
  state[4]! += e
  state[5]! += f
  state[6]! += g
  state[7]! += h
}

function writeDigest(): void {
  for (let i = 0; i < 8; i++) putWord(digest, 4 * i, state[i]!)
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
