import { formatUsd, payingFetch, settlementOf } from 'sion-x402'
import { PAYMENT_SIGNATURE } from 'sion-x402/wire'
import { receiptFacts, verifiedReceipt } from '../ledger-words.mjs'

export const title = 'Bought by transfer: one signature, one ledger transaction, one answer'

/** Buys once, and looks the payment's receipt up as a light client: the seller's word is not needed for it. */
export async function play(stage, cast) {
  const { buyer, light, node, seller, url } = cast
  const pay = payingFetch({
    wallet: buyer,
    node: node.url,
    chain: node.chain,
    maxPerRequest: '1',
    onPayment: ({ amount }) => stage.say(`dana signs a transfer of ${formatUsd(amount)} USD; her cap is 1 USD a request`),
    // The demo keeps the payment, to show later what a copy of it is worth.
    fetch: (request) => {
      cast.payment = request.headers.get(PAYMENT_SIGNATURE) ?? cast.payment
      return fetch(request)
    },
  })
  const started = performance.now()
  const response = await stage.wait('the seller has the ledger execute it and verifies the receipt', pay(url))
  const body = await response.text()
  const seconds = ((performance.now() - started) / 1_000).toFixed(2)
  const settlement = settlementOf(response)
  if (response.status !== 200 || settlement?.success !== true) throw new Error(`the paid request got ${response.status}: ${body}`)
  stage.good(`200 ${body} after ${seconds} s`)
  const receipt = await stage.wait('dana verifies the receipt herself', verifiedReceipt(light, settlement.transaction))
  stage.good('the receipt, verified as a light client that trusts only the chain’s identity:')
  stage.facts(receiptFacts(receipt, new Map([[seller.account, 'carol']])))
}
