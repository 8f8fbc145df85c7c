import * as P from 'micro-packed'
import { count, id, toHex, unpack, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'

/** What the validators certify of one Pulse. Ids and roots are hex. */
export interface Header {
  readonly chain: Id
  readonly epoch: number
  /** The genesis is Pulse 0; the first executed one is 1. */
  readonly number: number
  /** Counts attempts over the chain's life: two headers of one number differ in it. */
  readonly round: number
  /** Hash of the previous header; of the genesis for Pulse 1. */
  readonly parent: Id
  /** Milliseconds since the Unix epoch; grows from Pulse to Pulse. */
  readonly time: number
  readonly beacon: Id
  readonly stateRoot: Id
  /** Root and size of the knowledge log (claims). */
  readonly knowledgeRoot: Id
  readonly knowledgeSize: number
  /** Root and size of the RFC 9162 tree over the receipts, in the certified order. */
  readonly receiptsRoot: Id
  readonly receiptCount: number
  /** Root of the published data; zero while the chain publishes none. */
  readonly dataRoot: Id
  /** Root of the lane certificates; zero while the chain has no lanes. */
  readonly laneRoot: Id
  readonly forcedPending: number
  readonly forcedOverdue: number
  readonly configHash: Id
  readonly validatorSetHash: Id
}

const header: P.CoderType<Header> = P.struct({
  chain: id,
  epoch: count,
  number: count,
  round: count,
  parent: id,
  time: count,
  beacon: id,
  stateRoot: id,
  knowledgeRoot: id,
  knowledgeSize: count,
  receiptsRoot: id,
  receiptCount: P.U32BE,
  dataRoot: id,
  laneRoot: id,
  forcedPending: P.U32BE,
  forcedOverdue: P.U32BE,
  configHash: id,
  validatorSetHash: id,
})

export const ZERO_ID: Id = '0'.repeat(64)

export function encodeHeader(value: Header): Uint8Array {
  return header.encode(value)
}

/** @throws InputError unless `bytes` are the canonical encoding of a header. */
export function decodeHeader(bytes: Uint8Array): Header {
  return unpack(header, bytes, 'header')
}

export function headerHash(value: Header): Id {
  return toHex(taggedHash('sion/header/v1', encodeHeader(value)))
}

/** The next beacon: it follows from what is certified, so no validator can choose among several. */
export function nextBeacon(previous: Uint8Array, parent: Uint8Array): Id {
  return toHex(taggedHash('sion/beacon/v1', previous, parent))
}
