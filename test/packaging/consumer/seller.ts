// A seller and a facilitator's operator, as their compiler sees the package.
import express from 'express'
import { Hono } from 'hono'
import type { Id } from 'sion-x402'
import { startNode, type DevnetNode } from 'sion-x402/devnet'
import { paywall, type RouteTerms, type SellerOptions } from 'sion-x402/express'
import { remoteFacilitator, type Facilitator } from 'sion-x402/facilitator'
import { createSignaturePool, localFacilitator, startFacilitator } from 'sion-x402/facilitator/node'
import { paywall as honoPaywall } from 'sion-x402/hono'
import { createLightClient, httpTransport } from 'sion-x402/light'
import { createNodeClient } from 'sion-x402/sdk'
import { embeddedNonceStore, redisNonceStore, type NonceStore } from 'sion-x402/stores'
import { memoryNonceStore } from 'sion-x402/stores/memory'

export function sellers(payTo: Id, redis: string): { app: express.Express; hono: Hono } {
  const stores: NonceStore[] = [embeddedNonceStore({ folder: 'data' }), redisNonceStore(redis), memoryNonceStore()]
  const store = stores[0] ?? memoryNonceStore()
  const facilitator: Facilitator = remoteFacilitator({ url: 'http://127.0.0.1:8405', apiKey: undefined })
  const options: SellerOptions = { payTo, store, facilitator }
  const charge = paywall(options)
  const terms: RouteTerms<express.Request> = { price: (request) => (request.query['free'] === undefined ? '0.25' : 'free') }
  const app = express()
  app.get('/report', charge(terms), (_, response) => void response.json({ report: 'sunny' }))
  const hono = new Hono()
  hono.get('/report', honoPaywall({ payTo, store })('0.25'), (c) => c.json({ report: 'sunny' }))
  // @ts-expect-error a price is text: floats are no money
  charge(0.25)
  return { app, hono }
}

export async function facilitate(node: DevnetNode): Promise<string> {
  const transport = httpTransport(node.url)
  const signatures = createSignaturePool()
  const light = createLightClient({ transport, chain: node.chain, signatures })
  const logger = { info() {}, warn() {}, error() {} }
  const facilitator = localFacilitator({ light, node: createNodeClient(transport), signatures, settleWaitSeconds: 20, logger })
  const service = await startFacilitator({ facilitator, store: memoryNonceStore(), host: '127.0.0.1', port: 0, apiKeys: [], logger })
  return service.url
}

export const start: typeof startNode = startNode
