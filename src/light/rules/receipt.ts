import { fromHex, shortId, toHex, type Id } from '../../codec/index.js'
import { decodeReceipt, type Receipt } from '../../ledger/index.js'
import { leafHash, rootOf, verifyInclusion } from '../../merkle/index.js'
import type { Header } from '../../pulse/index.js'
import { LightClientError } from '../errors.js'
import { canonical } from './canonical.js'

/** Where a receipt stands in the receipts tree (RFC 9162 §2.1.3), as the node says. */
export interface ReceiptProof {
  readonly index: number
  readonly size: number
  readonly path: readonly Uint8Array[]
}

/**
 * The receipt of transaction `digest`, proven against a certified header. An inclusion proof fixes neither the size of
 * the tree nor the place in it: both are the header's and the receipt's, and the proof only has to agree.
 * @throws LightClientError `not_canonical`, `wrong_receipt`, `receipt_wrong_pulse`, `receipt_wrong_index`,
 * `receipt_wrong_size`, `receipt_not_proven`.
 */
export function checkReceipt(bytes: Uint8Array, proof: ReceiptProof, header: Header, digest: Id): Receipt {
  const receipt = canonical(decodeReceipt, bytes)
  const name = `the receipt of ${shortId(digest)}`
  if (receipt.digest !== digest) {
    throw new LightClientError('wrong_receipt', `asked for ${name}, the node showed that of ${shortId(receipt.digest)}`)
  }
  if (receipt.pulse !== header.number) {
    throw new LightClientError('receipt_wrong_pulse', `${name} says Pulse ${receipt.pulse}, its header is that of Pulse ${header.number}`)
  }
  if (receipt.index !== proof.index) {
    throw new LightClientError('receipt_wrong_index', `${name} says place ${receipt.index}, its proof is for place ${proof.index}`)
  }
  if (proof.size !== header.receiptCount) {
    throw new LightClientError('receipt_wrong_size', `${name} is proven in a tree of ${proof.size}; Pulse ${header.number} has ${header.receiptCount} receipts`)
  }
  if (!verifyInclusion(receiptsRoot(header), header.receiptCount, receipt.index, leafHash(bytes), proof.path)) {
    throw new LightClientError('receipt_not_proven', `${name}: its path does not lead to the receipts root of Pulse ${header.number}`)
  }
  return receipt
}

/**
 * All receipts of a Pulse, in the certified order. Inclusion proofs cannot show that none is left out, so root and count
 * are computed anew.
 * @throws LightClientError `not_canonical`, `receipts_incomplete`, `receipt_wrong_pulse`, `receipt_wrong_index`.
 */
export function checkAllReceipts(all: readonly Uint8Array[], header: Header): Receipt[] {
  if (all.length !== header.receiptCount || toHex(rootOf(all.map(leafHash))) !== header.receiptsRoot) {
    throw new LightClientError(
      'receipts_incomplete',
      `${all.length} receipts shown do not make up the ${header.receiptCount} that Pulse ${header.number} certifies, in their order`,
    )
  }
  return all.map((bytes, place) => {
    const receipt = canonical(decodeReceipt, bytes)
    if (receipt.pulse !== header.number) {
      throw new LightClientError('receipt_wrong_pulse', `receipt ${place} of Pulse ${header.number} says Pulse ${receipt.pulse}`)
    }
    if (receipt.index !== place) {
      throw new LightClientError('receipt_wrong_index', `receipt ${place} of Pulse ${header.number} says place ${receipt.index}`)
    }
    return receipt
  })
}

function receiptsRoot(header: Header): Uint8Array {
  return fromHex(header.receiptsRoot, 'receiptsRoot', 32)
}
