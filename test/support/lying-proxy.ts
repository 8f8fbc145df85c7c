import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** What stands between the node and whoever asked. */
export interface Exchange {
  readonly method: string
  /** Path and query as asked. */
  readonly path: string
  readonly status: number
  /** The node's JSON; undefined where it sent none. */
  readonly body: unknown
}

/** What the proxy says instead: JSON with a status, or a takeover of the raw response. */
export type Lie = { status?: number; body: unknown } | { raw: (response: ServerResponse) => void }

export interface LyingProxy {
  readonly url: string
  /** The node it asks; another one can be put in its place. */
  target: string
  /** Every path that was asked, in order. */
  readonly asked: string[]
  /** Undefined passes the answer on. */
  lie: (exchange: Exchange) => Lie | undefined
  stop(): Promise<void>
}

/** An HTTP proxy in front of the node at `target` that can rewrite each answer. Honest until `lie` is set. */
export async function lyingProxy(target: string): Promise<LyingProxy> {
  const asked: string[] = []
  const server = createServer((incoming, outgoing) => {
    asked.push(incoming.url ?? '')
    forward(incoming, proxy.target).then(
      ({ status, text }) => answer(outgoing, { method: incoming.method ?? '', path: incoming.url ?? '', status, body: parsed(text) }, proxy.lie),
      () => outgoing.destroy(),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: LyingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target,
    asked,
    lie: () => undefined,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return proxy
}

function forward(incoming: IncomingMessage, target: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const { host: _, connection: __, ...headers } = incoming.headers
    const outgoing = request(target + (incoming.url ?? ''), { method: incoming.method ?? 'GET', headers }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }))
      response.on('error', reject)
    })
    outgoing.on('error', reject)
    incoming.pipe(outgoing)
  })
}

function answer(outgoing: ServerResponse, exchange: Exchange, lie: LyingProxy['lie']): void {
  const instead = lie(exchange)
  if (instead !== undefined && 'raw' in instead) return instead.raw(outgoing)
  outgoing.writeHead(instead?.status ?? exchange.status, { 'content-type': 'application/json' })
  outgoing.end(JSON.stringify(instead === undefined ? exchange.body : instead.body))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
