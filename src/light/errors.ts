import { SionError } from '../codec/index.js'

/**
 * Every reason for which the light client refuses an answer: stable code, and what it means. A program decides by the
 * code; `node_unreachable` and `node_unavailable` pass by themselves; the `unknown_…` and `certificate_dropped` are what an honest node says too; all others are not to be believed.
 */
export const LIGHT_CLIENT_ERRORS = {
  node_unreachable: 'no answer: no connection, a broken one, or none within the time',
  node_unavailable: 'the node answered that it cannot answer now (5xx or 429)',
  node_refused: 'the node refused a request that it should know',
  node_malformed: 'the answer is not what the API says: no JSON, too large, a redirect, a field missing or of the wrong form',
  not_canonical: 'bytes that are not the canonical encoding of what they should be',

  wrong_chain: 'a genesis or a header of another chain than the pinned one',
  bad_validator_set: 'a set that is empty, has a member without stake, or lists a key twice',
  wrong_validator_set: 'the header names another validator set than the proven one',
  wrong_config: 'the header names other parameters than the genesis fixes',
  wrong_epoch: 'a header or certificate of another epoch than the validator set',
  wrong_number: 'a header or certificate of another Pulse than was asked for',
  wrong_parent: 'Pulse 1 does not build on the genesis',
  header_from_future: 'the header’s time is further ahead of the clock than drift explains',
  stale_header: 'the newest header shown is too old, or older than one the node showed before',
  unknown_pulse: 'the node has no certified header for that number',
  certificate_dropped: 'the node no longer keeps the certificate of that Pulse, which was empty and long ago',

  wrong_header: 'the certificate is for another header',
  empty_certificate: 'a certificate without votes',
  unknown_signer: 'a vote from outside the validator set',
  duplicate_signer: 'one validator votes twice',
  votes_out_of_order: 'votes that are not in the order of the validator set',
  under_quorum: 'votes of two thirds of the stake or less',
  bad_signature: 'one of a vote’s two signatures is not good',
  conflicting_certificates: 'two certified headers exclude each other: the chain’s validators broke their oath',

  wrong_receipt: 'a receipt of another transaction',
  receipt_wrong_pulse: 'the receipt says it is of another Pulse than the header',
  receipt_wrong_index: 'the receipt is proven at another place than it says',
  receipt_wrong_size: 'the proof is for a tree of another size than the header says',
  receipt_not_proven: 'the path does not lead from the receipt to the header’s root',
  receipts_incomplete: 'the receipts of a Pulse are not all of them, in their order',

  wrong_object: 'an object of another id',
  object_not_proven: 'the proof does not lead from the object, or its absence, to the header’s state root',
  keys_not_of_id: 'an account whose recorded keys do not derive its id',
  claim_not_of_id: 'a claim whose statement does not hash to its id',

  knowledge_incomplete: 'claims of the knowledge log that are not all that were asked for',
  claim_wrong_index: 'a claim shown at another place of the knowledge log than was asked for',
  claim_not_logged: 'the path does not lead from the claim to the header’s knowledge root',
  knowledge_rewritten: 'the knowledge log is not shown to begin with what it held when it was seen before',

  wrong_body: 'a transaction body that does not hash to its digest',
  unknown_transaction: 'the node does not publish the body of that transaction',
} as const

export type LightClientCode = keyof typeof LIGHT_CLIENT_ERRORS

/** An answer that was not believed, or that did not come. */
export class LightClientError extends SionError {
  override readonly name: string = 'LightClientError'

  constructor(override readonly code: LightClientCode, message: string, options?: { cause?: unknown }) {
    super(code, message, options)
  }
}

/** A header and its certificate as bytes: anyone can check them again. */
export interface CertifiedBytes {
  readonly number: number
  readonly header: Uint8Array
  readonly certificate: Uint8Array
}

/**
 * Proof that at least a third of the stake signed against itself: either two headers for one number, or one Pulse that
 * does not build on the certified one before it. Nothing on this chain can be believed before people have looked.
 */
export class ConflictingCertificates extends LightClientError {
  override readonly name = 'ConflictingCertificates'

  constructor(
    message: string,
    readonly evidence: readonly [CertifiedBytes, CertifiedBytes],
  ) {
    super('conflicting_certificates', message)
  }
}

/** Whether asking again later may help: the node was not reached, or said that it cannot answer now. */
export function isNodeAway(error: unknown): boolean {
  return error instanceof LightClientError && (error.code === 'node_unreachable' || error.code === 'node_unavailable')
}
