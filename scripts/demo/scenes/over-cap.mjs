import { PaymentError, payingFetch } from 'sion-x402'

const CAP = '0.1'

export const title = 'A price over the buyer’s cap'

/** A client that may pay less than is asked signs nothing. */
export async function play(stage, cast) {
  const { buyer, node, url } = cast
  const pay = payingFetch({ wallet: buyer, node: node.url, chain: node.chain, maxPerRequest: CAP })
  stage.say(`GET ${url} with a cap of ${CAP} USD`)
  const refused = await pay(url).then(
    (response) => new Error(`a request over the cap got ${response.status}`),
    (error) => error,
  )
  if (!(refused instanceof PaymentError) || refused.code !== 'over_cap' || pay.spent() !== 0n) throw refused
  stage.good(`refused, and nothing signed: ${refused.message}`)
}
