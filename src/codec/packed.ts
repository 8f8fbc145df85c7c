import * as P from 'micro-packed'
import { InputError, messageOf } from './errors.js'
import { fromHex, toHex, type Id } from './hex.js'
import { isPrintable } from './printable.js'
import { MAX_AMOUNT } from './usd.js'

/**
 * The building blocks of canonical bytes (docs/protocol.md §1), over micro-packed: fixed layouts, big-endian, one value
 * one encoding. Decoding refuses trailing and missing bytes, unknown tags and numbers out of range.
 */

/** Hex text of exactly `length` bytes. */
export function hexBytes(length: number): P.CoderType<string> {
  return P.apply(P.bytes(length), {
    encode: toHex,
    decode: (text: string) => fromHex(text, 'hex', length),
  })
}

/** An id or digest: 32 bytes, hex in memory. */
export const id: P.CoderType<Id> = hexBytes(32)

/** Money: u64, at most 2^53 − 1 micro-USD. */
export const amount: P.CoderType<bigint> = P.validate(P.U64BE, (value) => {
  if (value > MAX_AMOUNT) throw new RangeError(`amount ${value} is over ${MAX_AMOUNT}`)
  return value
})

/** A count, a Pulse number, a time: u64 that is a safe integer. */
export const count: P.CoderType<number> = P.apply(P.U64BE, {
  encode: (value: bigint) => {
    if (value > MAX_AMOUNT) throw new RangeError(`number ${value} is over ${MAX_AMOUNT}`)
    return Number(value)
  },
  decode: (value: number) => {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`number ${value} is not a count`)
    return BigInt(value)
  },
})

/** UTF-8 text of at most `most` bytes behind its length. Refused is what is not printable, see {@link isPrintable}. */
export function text(most: number): P.CoderType<string> {
  return P.validate(P.string(most < 256 ? P.U8 : P.U16BE), (value) => {
    const bytes = new TextEncoder().encode(value).length
    if (bytes > most) throw new RangeError(`text of ${bytes} bytes is over ${most}`)
    // A lone surrogate would be written as U+FFFD and read back as another text.
    if (!isPrintable(value)) throw new RangeError('text with a control character or a lone surrogate')
    return value
  })
}

/** A list of at most `most`, behind its u16 length. */
export function list<T>(inner: P.CoderType<T>, most: number): P.CoderType<T[]> {
  return P.validate(P.array(P.U16BE, inner), (items) => {
    if (items.length > most) throw new RangeError(`list of ${items.length} is over ${most}`)
    return items
  })
}

/** Present or absent, behind one byte. */
export function maybe<T>(inner: P.CoderType<T>): P.CoderType<T | undefined> {
  return P.optional(P.bool, inner)
}

/**
 * Bytes to value. The value shares no memory with `bytes`.
 * @throws InputError naming `field` for anything but the one encoding of a value.
 */
export function unpack<T>(coder: P.CoderType<T>, bytes: Uint8Array, field: string): T {
  try {
    // Fields of bytes are views: of a caller's array they would change with it, of a Node Buffer they would be Buffers.
    return whole(coder).decode(new Uint8Array(bytes))
  } catch (cause) {
    throw new InputError(field, `not its canonical encoding (${messageOf(cause)})`, { cause })
  }
}

/** micro-packed quotes the bytes that are left over, and they can be a payment's: this only counts them. */
function whole<T>(coder: P.CoderType<T>): P.CoderType<T> {
  return P.wrap<T>({
    encodeStream: (writer, value) => coder.encodeStream(writer, value),
    decodeStream: (reader) => {
      const value = coder.decodeStream(reader)
      if (!reader.isEnd()) throw new RangeError(`${reader.leftBytes} bytes too many`)
      return value
    },
  })
}

type Variants<T extends { kind: string }> = {
  readonly [K in T['kind']]: readonly [tag: number, body: P.CoderType<Omit<Extract<T, { kind: K }>, 'kind'>>]
}

/**
 * A union told apart by `kind`: one tag byte, then the body of that kind. The tags are the protocol's, the names are
 * ours; a tag that is not listed is refused.
 */
export function byKind<T extends { kind: string }>(variants: Variants<T>): P.CoderType<T> {
  // micro-packed types its unions by TAG and data and cannot follow a mapped type: the shapes are equal by construction.
  const tagged = P.mappedTag(P.U8, variants as never) as unknown as P.CoderType<{ TAG: string; data: object }>
  return P.apply(tagged, {
    encode: ({ TAG, data }): T => ({ kind: TAG, ...data }) as unknown as T,
    decode: (value: T) => ({ TAG: value.kind, data: value }),
  })
}
