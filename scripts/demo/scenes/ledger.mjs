import { createLightClient, devnetWallet, formatUsd, httpTransport, parseUsd } from 'sion-x402'
import { startNode } from 'sion-x402/devnet'
import { createNodeClient } from 'sion-x402/sdk'
import { short, verifiedReceipt } from '../ledger-words.mjs'

const FUNDING = parseUsd('10', 'funding')

export const title = 'A ledger: four validators, post-quantum signatures'

/** Starts the devnet, gives the buyer money, and keeps a light client that trusts the chain's identity and nothing else. */
export async function play(stage, cast) {
  const node = await stage.wait('making keys and the first Pulse', startNode({ listen: { host: '127.0.0.1', port: 0 } }))
  stage.closeLater(() => node.stop())
  stage.good(`the ledger answers at ${node.url}`)
  stage.facts([
    ['chain', `${node.chain}  (what a buyer and a seller pin)`],
    ['network', node.network],
  ])
  cast.node = node
  cast.buyer = devnetWallet('dana')
  cast.seller = devnetWallet('carol')
  cast.light = createLightClient({ transport: httpTransport(node.url), chain: node.chain })

  const submitted = await createNodeClient(httpTransport(node.url)).faucet(cast.buyer.account, FUNDING)
  if (submitted.kind !== 'submitted') throw new Error(`the faucet paid nothing: ${submitted.reason}`)
  await stage.wait('the faucet pays the buyer', verifiedReceipt(cast.light, submitted.digest))
  stage.good(`the buyer, dana (account ${short(cast.buyer.account)}), has ${formatUsd(FUNDING)} USD`)
}
