import { fromHex, toHex, type Id } from '../../codec/index.js'
import { hmacSha256 } from '../../crypto/hmac.js'

const label = new TextEncoder().encode('settle')

/**
 * How a seller names itself to a facilitator for one payment: any server that shares the seller's secret gets the same
 * success again after a crash, and nobody else can ask in its name.
 */
export function settlementAsker(secret: Uint8Array, payment: Id): string {
  const message = new Uint8Array(label.length + 32)
  message.set(label)
  message.set(fromHex(payment, 'payment', 32), label.length)
  return toHex(hmacSha256(secret, message))
}
