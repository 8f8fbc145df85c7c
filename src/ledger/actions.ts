import * as P from 'micro-packed'
import { amount, byKind, id, text, type Id } from '../codec/index.js'

/** Pay `amount` micro-USD to `to`. `purpose` names what for, such as `x402:<nonce>`; empty when there is none. */
export interface Transfer {
  readonly kind: 'transfer'
  readonly to: Id
  readonly amount: bigint
  readonly purpose: string
}

/** From now on every transaction of the signer needs both signatures, or one again. */
export interface SetDual {
  readonly kind: 'setDual'
  readonly dual: boolean
}

/** Everything a transaction can ask. A family adds its actions here and in {@link action}, under the next free tag. */
export type Action = Transfer | SetDual

export const MAX_PURPOSE_BYTES = 120

export const action: P.CoderType<Action> = byKind<Action>({
  transfer: [1, P.struct({ to: id, amount, purpose: text(MAX_PURPOSE_BYTES) })],
  setDual: [2, P.struct({ dual: P.bool })],
})
