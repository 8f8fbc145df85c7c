import { Hono } from 'hono'
import { serveHttp } from '../../facilitator/http-server.js'
import { paywall, type SellerOptions } from '../../hono/node.js'

export interface ResourceServerOptions {
  readonly host: string
  readonly port: number
  readonly path: string
  readonly price: string
  readonly body: string
  readonly seller: SellerOptions
}

export interface ResourceServer {
  readonly url: string
  /** Takes no new requests, answers those under way, ends. */
  stop(): Promise<void>
}

/** One resource with a fixed body, behind a paywall. */
export async function startResourceServer(options: ResourceServerOptions): Promise<ResourceServer> {
  const { host, port, path, price, body } = options
  const mimeType = isJson(body) ? 'application/json' : 'text/plain; charset=utf-8'
  const charge = paywall(options.seller)
  await charge.ready()
  const app = new Hono()
  // The body is served at this path to the letter and nowhere else: there is no spelling that the price does not meet.
  app.use('*', async (context, next) => {
    if (pathnameOf(context.req.url) !== path) return context.json({ error: `nothing here; ${path} is for sale` }, 404)
    if (context.req.method !== 'GET' && context.req.method !== 'HEAD') {
      return context.json({ error: `${context.req.method} is not for sale, GET is` }, 405, { Allow: 'GET, HEAD' })
    }
    return next()
  })
  app.use('*', charge({ price, mimeType: mimeType.split(';')[0] ?? mimeType }))
  app.use('*', (context) => Promise.resolve(context.body(body, 200, { 'Content-Type': mimeType })))

  const server = await serveHttp(app.fetch, host, port)
  return {
    url: server.url,
    async stop() {
      await server.stop()
      await charge.close()
    },
  }
}

function pathnameOf(url: string): string {
  const slash = url.indexOf('/', url.indexOf('://') + 3)
  return slash < 0 ? '/' : (url.slice(slash).split('?', 1)[0] ?? '/')
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
