import * as P from 'micro-packed'
import { unpack, type Id } from '../codec/index.js'
import { decodeSigned, encodeSigned, type SignedTransaction } from '../ledger/index.js'
import { decodeHeader, encodeHeader, headerHash, type Header } from '../pulse/index.js'

/** What validators are asked to sign: a header, and the transactions that lead to it. */
export interface Proposal {
  readonly header: Header
  readonly headerHash: Id
  readonly transactions: readonly SignedTransaction[]
}

export function proposalOf(header: Header, transactions: readonly SignedTransaction[]): Proposal {
  return { header, headerHash: headerHash(header), transactions }
}

const packed = P.struct({ header: P.bytes(P.U32BE), transactions: P.array(P.U32BE, P.bytes(P.U32BE)) })

/** With signatures, so that a restarted node can propose the very same: kept only until it is certified. */
export function encodeProposal({ header, transactions }: Proposal): Uint8Array {
  return packed.encode({ header: encodeHeader(header), transactions: transactions.map(encodeSigned) })
}

/** @throws InputError unless `bytes` are a proposal as {@link encodeProposal} writes it. */
export function decodeProposal(bytes: Uint8Array): Proposal {
  const { header, transactions } = unpack(packed, bytes, 'proposal')
  return proposalOf(decodeHeader(header), transactions.map(decodeSigned))
}
