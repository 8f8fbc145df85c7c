import express from 'express'
import { formatUsd } from 'sion-x402'
import { paywall } from 'sion-x402/express'
import { memoryNonceStore } from 'sion-x402/stores'
import { decodePaymentRequired, PAYMENT_REQUIRED } from 'sion-x402/wire'
import { balanceOf, short } from '../ledger-words.mjs'

const PRICE = '0.25'

export const title = `An API that charges ${PRICE} USD a request, asked without a payment`

/** Starts the seller's Express app and shows what an unpaid request gets. */
export async function play(stage, cast) {
  const { light, node, seller } = cast
  const charge = paywall({ payTo: seller.account, chain: node.chain, node: node.url, store: memoryNonceStore() })
  stage.closeLater(() => charge.close())
  const app = express()
  app.get('/report', charge({ price: PRICE, description: 'the daily report' }), (_, response) => {
    response.json({ report: 'sunny', served: ++cast.served })
  })
  cast.served = 0
  cast.url = `${await listen(stage, app)}/report`
  await charge.ready()
  cast.before = await balanceOf(light, seller.account)

  const response = await fetch(cast.url)
  await response.body?.cancel()
  const header = response.headers.get(PAYMENT_REQUIRED)
  if (response.status !== 402 || header === null) throw new Error(`an unpaid request got ${response.status}, not 402`)
  const { accepts, resource } = decodePaymentRequired(header)
  const [offer] = accepts
  stage.say(`GET ${cast.url}`)
  stage.good(`402 Payment Required, and the handler has not run`)
  stage.facts([
    ['sells', resource.description],
    ['price', `${formatUsd(BigInt(offer.amount))} USD (${offer.amount} micro-USD), scheme ${offer.scheme}`],
    ['pay to', `${short(offer.payTo)} (carol)`],
    ['network', offer.network],
    ['purpose', `${offer.extra.purpose}, good for ${offer.maxTimeoutSeconds} s and this request`],
  ])
}

function listen(stage, app) {
  return new Promise((resolve, reject) => {
    const server = app.listen(0, '127.0.0.1', (error) => {
      if (error) reject(error)
      else resolve(`http://127.0.0.1:${server.address().port}`)
    })
    stage.closeLater(
      () =>
        new Promise((done) => {
          server.close(done)
          server.closeAllConnections()
        }),
    )
  })
}
