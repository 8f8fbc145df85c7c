import { createHash } from 'node:crypto'
import { toHex, type Id } from '../../src/codec/index.js'

/** The state tree as docs/protocol.md §4 defines it, and nothing else: recursive, from scratch, another SHA-256. */
export function referenceRoot(objects: ReadonlyMap<Id, Uint8Array>): string {
  return subtree([...objects], 0).toString('hex')
}

function subtree(objects: [Id, Uint8Array][], depth: number): Buffer {
  const [first] = objects
  if (first === undefined) return Buffer.alloc(32)
  if (objects.length === 1) return tagged('sion/state-leaf/v1', Buffer.from(first[0], 'hex'), first[1])
  const bit = (id: Id): string => bitsOf(id)[depth] ?? 'past the end'
  return tagged(
    'sion/state-node/v1',
    subtree(objects.filter(([id]) => bit(id) === '0'), depth + 1),
    subtree(objects.filter(([id]) => bit(id) === '1'), depth + 1),
  )
}

/** An id as 256 binary digits. */
export function bitsOf(id: Id): string {
  return BigInt(`0x${id}`).toString(2).padStart(256, '0')
}

/** The id that begins with `bits`; the rest is zero, or `fill`. */
export function idOf(bits: string, fill = '0'): Id {
  return BigInt(`0b${bits.padEnd(256, fill)}`).toString(16).padStart(64, '0')
}

/** A stand-in for the hash of an object. */
export function valueOf(text: string | number): Uint8Array {
  return new Uint8Array(createHash('sha256').update(String(text)).digest())
}

export function tagged(tag: string, ...parts: Uint8Array[]): Buffer {
  const hash = createHash('sha256').update(Buffer.from([tag.length])).update(tag)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export function hex(bytes: Uint8Array | undefined): string | undefined {
  return bytes === undefined ? undefined : toHex(bytes)
}
