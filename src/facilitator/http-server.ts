import { serve, type ServerType } from '@hono/node-server'
import { messageOf, SionError } from '../codec/index.js'

export interface HttpServer {
  readonly url: string
  /** Takes no new connections, answers what is under way, ends. */
  stop(): Promise<void>
}

/** A connection that was answered is kept open for the next request; while stopping nobody waits for that. */
const LOOK_FOR_IDLE_MS = 50

/**
 * Serves `fetch` until it is stopped.
 * @param port 0 for a free one.
 * @throws SionError `cannot_listen`.
 */
export async function serveHttp(fetch: Parameters<typeof serve>[0]['fetch'], host: string, port: number): Promise<HttpServer> {
  const server = await new Promise<ServerType>((resolve, reject) => {
    const starting = serve({ fetch, hostname: host, port }, () => resolve(starting))
    starting.once('error', reject)
  }).catch((cause: unknown) => {
    throw new SionError('cannot_listen', `cannot listen on ${host}:${port}: ${messageOf(cause)}`, { cause })
  })
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    stop: () =>
      new Promise((resolve) => {
        const closing = setInterval(closeIdle, LOOK_FOR_IDLE_MS)
        server.close(() => {
          clearInterval(closing)
          resolve()
        })
        closeIdle()
      }),
  }

  function closeIdle(): void {
    if ('closeIdleConnections' in server) server.closeIdleConnections()
  }
}
