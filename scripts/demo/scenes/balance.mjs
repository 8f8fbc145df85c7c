import { formatUsd } from 'sion-x402'
import { balanceOf } from '../ledger-words.mjs'

export const title = 'What the seller got'

/** The seller's balance, proven against the state root of a certified Pulse. */
export async function play(stage, cast) {
  const after = await balanceOf(cast.light, cast.seller.account)
  stage.facts([
    ['before', `${formatUsd(cast.before.balance)} USD, proven at Pulse ${cast.before.pulse}`],
    ['after', `${formatUsd(after.balance)} USD, proven at Pulse ${after.pulse}`],
  ])
  const earned = after.balance - cast.before.balance
  stage.good(`carol was paid ${formatUsd(earned)} USD for ${cast.served} answer: no copy of a payment bought another`)
}
