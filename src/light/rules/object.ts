import { fromHex, shortId, type Id } from '../../codec/index.js'
import { accountOf, claimId, decodeObject, objectHash, type LedgerObject } from '../../ledger/index.js'
import { verifyState, type StateProof } from '../../merkle/index.js'
import type { Header } from '../../pulse/index.js'
import { LightClientError } from '../errors.js'
import { canonical } from './canonical.js'

/**
 * The object `id` in the state after a certified header's Pulse, or its proven absence.
 * @param bytes undefined where the node says that there is none.
 * @throws LightClientError `object_not_proven`, `not_canonical` (also an object that this version does not know),
 * `keys_not_of_id`, `claim_not_of_id`.
 */
export function checkObject(id: Id, bytes: Uint8Array | undefined, proof: StateProof, header: Header): LedgerObject | undefined {
  const root = fromHex(header.stateRoot, 'stateRoot', 32)
  const hash = bytes === undefined ? undefined : objectHash(bytes)
  if (!verifyState(root, id, hash, proof)) {
    const claim = bytes === undefined ? `that there is no object ${shortId(id)}` : `object ${shortId(id)}`
    throw new LightClientError('object_not_proven', `the proof does not show ${claim} under the state root of Pulse ${header.number}`)
  }
  if (bytes === undefined) return undefined
  const object = canonical(decodeObject, bytes)
  if (object.kind === 'account' && object.keys !== undefined && accountOf(object.keys) !== id) {
    throw new LightClientError('keys_not_of_id', `account ${shortId(id)} has recorded keys of ${shortId(accountOf(object.keys))}`)
  }
  if (object.kind === 'claim' && claimId(object) !== id) {
    throw new LightClientError('claim_not_of_id', `claim ${shortId(id)} holds the statement of ${shortId(claimId(object))}`)
  }
  return object
}
