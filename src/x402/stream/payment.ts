import { describe, fromHex, InputError, parseId, toHex } from '../../codec/index.js'
import type { Jump, StreamPayment } from '../../desk/index.js'
import { record } from '../wire.js'

/** More nodes than any checkpoint tree has: what a hostile path may cost in memory. */
const MAX_PATH = 64

/**
 * The `payload` of a stream payment: `{ stream, position, value, jump?: { index, path }, window? }`, bytes in hex. Only
 * its form is read here; whether the position and the lengths are right the desk says, each in its own words.
 *
 * @throws InputError naming the field.
 */
export function parseStreamPayload(payload: Record<string, unknown>): StreamPayment {
  const { stream, position, value, jump, window } = payload
  if (typeof position !== 'number') throw new InputError('payload.position', `expected a number, not ${describe(position)}`)
  if (window !== undefined && typeof window !== 'boolean') {
    throw new InputError('payload.window', `expected true or false, not ${describe(window)}`)
  }
  return {
    stream: parseId(stream, 'payload.stream'),
    position,
    value: shortHex(value, 'payload.value'),
    ...(jump === undefined ? {} : { jump: parseJump(jump) }),
    ...(window === undefined ? {} : { window }),
  }
}

/** The same, on the payer's side. */
export function streamPayload({ stream, position, value, jump, window }: StreamPayment): Record<string, unknown> {
  return {
    stream,
    position,
    value: toHex(value),
    ...(jump === undefined ? {} : { jump: { index: jump.index, path: jump.path.map((node) => toHex(node)) } }),
    ...(window === undefined ? {} : { window }),
  }
}

function parseJump(value: unknown): Jump {
  const { index, path } = record(value, 'payload.jump')
  if (typeof index !== 'number') throw new InputError('payload.jump.index', `expected a number, not ${describe(index)}`)
  if (!Array.isArray(path)) throw new InputError('payload.jump.path', `expected an array, not ${describe(path)}`)
  if (path.length > MAX_PATH) throw new InputError('payload.jump.path', `${path.length} nodes; at most ${MAX_PATH}`)
  return { index, path: path.map((node: unknown, i) => shortHex(node, `payload.jump.path[${i}]`)) }
}

function shortHex(value: unknown, field: string): Uint8Array {
  if (typeof value === 'string' && value.length > 128) throw new InputError(field, `${value.length} hex digits; 64 are right`)
  return fromHex(value, field)
}
