import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import express, { type Express } from 'express'
import type { Id } from '../../src/codec/index.js'
import { randomBytes } from '../../src/crypto/runtime.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'
import { paywall, type Charge, type SellerOptions } from '../../src/express/index.js'
import { payingFetch, type PayingFetch, type PayingFetchOptions } from '../../src/fetch/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { walletFromSeed, type Wallet } from '../../src/sdk/index.js'
import { memoryNonceStore } from '../../src/x402/stores/memory.js'
import { Api, newWallet } from '../node/support.js'

/** A devnet of one validator, and whoever trades on it in a test. Everything it starts ends with it. */
export interface Market {
  readonly node: DevnetNode
  readonly api: Api
  /** A wallet that nobody else has, with money; the ledger does not know its keys. */
  buyer(usd?: string): Promise<Wallet>
  /** payingFetch of a wallet, on this chain. */
  fetchOf(wallet: Wallet, options?: Partial<PayingFetchOptions>): PayingFetch
  /** Micro-USD. */
  balance(account: Id): Promise<bigint>
  /** How many transfers `account` got, and their sum, as the node's events tell it. */
  received(account: Id): Promise<{ payments: number; amount: bigint }>
  /** Listens on a free port until the market ends. */
  listen(listener: RequestListener, options?: Parameters<typeof createServer>[0]): Promise<string>
  /** Runs at the end, before what was started earlier. */
  defer(end: () => Promise<unknown> | void): void
  stop(): Promise<void>
}

export async function startMarket(): Promise<Market> {
  const ends: (() => Promise<unknown> | void)[] = []
  const node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 20_000 })
  ends.push(() => node.stop())
  const api = new Api(node.url, node.chain)
  return {
    node,
    api,
    async buyer(usd = '10') {
      const wallet = walletFromSeed(randomBytes(32))
      await api.fund(wallet.account, usd)
      return wallet
    },
    fetchOf: (wallet, options = {}) => payingFetch({ wallet, node: node.url, chain: node.chain, ...options }),
    balance: (account) => api.balance(account),
    async received(account) {
      const { body } = await api.get<{ event: { Transferred?: { outputs: [Id, number][] } } }[]>('/v1/events?limit=1000')
      const outputs = body.flatMap(({ event }) => event.Transferred?.outputs ?? []).filter(([to]) => to === account)
      return { payments: outputs.length, amount: outputs.reduce((sum, [, amount]) => sum + BigInt(amount), 0n) }
    },
    async listen(listener, options = {}) {
      const { url, close } = await listenOn(createServer(options, listener))
      ends.push(close)
      return url
    },
    defer: (end) => void ends.push(end),
    async stop() {
      for (const end of ends.reverse()) await end()
    },
  }
}

async function listenOn(server: Server): Promise<{ url: string; close: () => Promise<void> }> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

export interface TestSeller {
  readonly url: string
  readonly payee: Id
}

/** An Express app that sells to a payee of its own. */
export async function expressSeller(
  market: Market,
  routes: (app: Express, charge: Charge) => void,
  options: Partial<SellerOptions> & { maxHeaderSize?: number } = {},
): Promise<TestSeller> {
  const { maxHeaderSize, ...seller } = options
  const payee = newWallet().id
  const charge = paywall({
    payTo: payee,
    store: memoryNonceStore(),
    chain: market.node.chain,
    ...(seller.facilitator === undefined ? { node: market.node.url } : {}),
    signatures: inlineSignatures,
    settleWaitSeconds: 10,
    ...seller,
  })
  const app = express()
  routes(app, charge)
  const url = await market.listen(app, maxHeaderSize === undefined ? {} : { maxHeaderSize })
  await charge.ready()
  market.defer(() => charge.close())
  return { url, payee: seller.payTo ?? payee }
}

export interface CuttingProxy {
  readonly url: string
  /** Payment headers that went through, in order. */
  readonly payments: string[]
  /** How many of the next answers to paid requests are lost: the connection is cut when they come. */
  cutAnswers: number
  /** Paid requests that are not passed on: the connection is cut before. */
  cutRequests: number
}

/** An HTTP proxy before a seller that can lose a paid request, or the answer to one. */
export async function cuttingProxy(market: Market, target: string): Promise<CuttingProxy> {
  const proxy = { url: '', payments: [] as string[], cutAnswers: 0, cutRequests: 0 }
  proxy.url = await market.listen((incoming, outgoing) => void forward(incoming, outgoing))
  return proxy

  async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const payment = incoming.headers['payment-signature']
    if (typeof payment === 'string') {
      proxy.payments.push(payment)
      if (proxy.cutRequests > 0) {
        proxy.cutRequests--
        outgoing.destroy()
        return
      }
    }
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const headers = new Headers()
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (!['host', 'connection', 'content-length', 'transfer-encoding'].includes(name)) headers.set(name, String(value))
    }
    const { method = 'GET' } = incoming
    const body = chunks.length > 0 && method !== 'GET' ? { body: Buffer.concat(chunks) } : {}
    const answer = await fetch(target + (incoming.url ?? ''), { method, headers, redirect: 'manual', ...body })
    const content = Buffer.from(await answer.arrayBuffer())
    if (payment !== undefined && proxy.cutAnswers > 0) {
      proxy.cutAnswers--
      outgoing.destroy()
      return
    }
    const passed = [...answer.headers].filter(([name]) => !['content-encoding', 'transfer-encoding', 'content-length'].includes(name))
    outgoing.writeHead(answer.status, Object.fromEntries(passed))
    outgoing.end(content)
  }
}
