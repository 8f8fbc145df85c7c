import { messageOf } from '../../codec/index.js'
import { LightClientError } from '../errors.js'

/** What `decode` makes of `bytes` from a node. @throws LightClientError `not_canonical`. */
export function canonical<T>(decode: (bytes: Uint8Array) => T, bytes: Uint8Array): T {
  try {
    return decode(bytes)
  } catch (cause) {
    throw new LightClientError('not_canonical', messageOf(cause), { cause })
  }
}
