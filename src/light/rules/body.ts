import { shortId, type Id } from '../../codec/index.js'
import { decodeBody, digestOf, type Body } from '../../ledger/index.js'
import { LightClientError } from '../errors.js'
import { canonical } from './canonical.js'

/**
 * The body that `digest` is the hash of. That it was executed, and with what outcome, its receipt says, not this.
 * @throws LightClientError `not_canonical`, `wrong_body`, `wrong_chain`.
 */
export function checkBody(bytes: Uint8Array, digest: Id, chain: Id): Body {
  const body = canonical(decodeBody, bytes)
  const actual = digestOf(body)
  if (actual !== digest) {
    throw new LightClientError('wrong_body', `asked for the body of ${shortId(digest)}, the node showed that of ${shortId(actual)}`)
  }
  if (body.chain !== chain) {
    throw new LightClientError('wrong_chain', `transaction ${shortId(digest)} is for chain ${shortId(body.chain)}, not for ${shortId(chain)}`)
  }
  return body
}
