import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { Server } from 'node:http'
import { Readable } from 'node:stream'
import { serve } from '@hono/node-server'
import { Hono, type Context, type MiddlewareHandler } from 'hono'
import { methodOverride } from 'hono/method-override'
import { stream, streamSSE } from 'hono/streaming'
import { paywall } from '../../src/hono/node.js'
import { largeChunks, SECRET, type Behaviour, type Framework, type Scene, type ShopSpec } from '../x402/support/shop.js'

/** Hono on Node, as an app would use it. */
export const honoFramework: Framework = {
  name: 'Hono',
  async build(spec, options, scene) {
    const charge = paywall(options)
    const app = new Hono()
    for (const middleware of before(spec, app)) app.use(middleware)
    place(app, spec, charge(termsOf(spec)), (context) => behave(scene.next(), scene, context))
    app.onError((error, context) => {
      const status = 'status' in error && error.status === 422 ? 422 : 500
      return context.json({ handled: error.message }, status)
    })
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
    if (!(server instanceof Server)) throw new Error('not HTTP/1')
    await once(server, 'listening')
    return { server, ready: charge.ready, close: charge.close }
  },
}

function termsOf({ price = '0.25', description, mimeType }: ShopSpec) {
  return {
    price: typeof price === 'string' ? price : (context: Context) => price((name) => context.req.header(name)),
    ...(description === undefined ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
  }
}

function before({ cors, presets, overrides }: ShopSpec, app: Hono): MiddlewareHandler[] {
  const middleware: MiddlewareHandler[] = []
  if (overrides === true) middleware.push(methodOverride({ app, header: 'x-http-method-override' }))
  if (cors === true) {
    middleware.push(async (context, next) => {
      context.header('Access-Control-Allow-Origin', '*')
      context.header('Access-Control-Expose-Headers', 'X-App')
      context.res.headers.set('Access-Control-Allow-Headers', 'Content-Type')
      await next()
    })
  }
  if (presets === true) {
    middleware.push(async (context, next) => {
      context.header('Cache-Control', 'public, max-age=600')
      context.header('X-App', 'shop')
      await next()
    })
  }
  return middleware
}

function place(app: Hono, spec: ShopSpec, charge: MiddlewareHandler, handler: (context: Context) => Promise<Response>): void {
  const validate: MiddlewareHandler = async (context, next) => {
    if (spec.validates === true && context.req.query('bad') !== undefined) return context.text('bad input', 400)
    await next()
  }
  switch (spec.place ?? 'route') {
    case 'route':
      app.get('/a', validate, charge, handler)
      break
    case 'app':
      app.use(charge)
      app.all('/a', handler)
      break
    case 'router': {
      const router = new Hono()
      router.use(charge)
      router.all('/a', handler)
      app.route('/api', router)
    }
  }
}

async function behave(behaviour: Behaviour, scene: Scene, context: Context): Promise<Response> {
  switch (behaviour) {
    case 'json':
      return context.json({ sold: true })
    case 'created':
      return context.text(SECRET, 201)
    case 'empty':
      return context.body(null)
    case 'no-content':
      return context.body(null, 204)
    case 'not-modified':
      return context.body(null, 304)
    case 'redirect':
      return context.redirect('/elsewhere')
    case 'not-found':
      return context.text('no such thing', 404)
    case 'invalid':
      return context.text('bad input', 400)
    case 'server-error':
      return context.text('overloaded', 503)
    case 'throws':
      throw new Error('thrown')
    case 'rejects':
      await Promise.resolve()
      throw new Error('rejected')
    case 'throws-422':
      throw Object.assign(new Error('not like this'), { status: 422 })
    case 'chunks':
      return stream(context, async (out) => {
        for (const chunk of ['one ', 'two ', 'three']) {
          await out.write(chunk)
          await new Promise(setImmediate)
        }
      })
    case 'events':
      return streamSSE(context, async (out) => {
        await out.writeSSE({ data: 'one' })
        await scene.hold.wait()
        await out.writeSSE({ data: 'two' })
      })
    case 'file':
      // Node's streams and the web's, which are the same thing but not the same type.
      return context.body(Readable.toWeb(createReadStream(scene.filePath)) as unknown as ReadableStream, 200, { 'Content-Type': 'application/octet-stream' })
    case 'large': {
      const chunks = largeChunks(scene)
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          const { done, value } = chunks.next()
          if (done === true) controller.close()
          else controller.enqueue(value)
        },
      })
      return context.body(body)
    }
    case 'headers':
      return context.body(SECRET, 200, {
        'Set-Cookie': ['a=1; Path=/', 'b=2; Path=/'],
        ETag: '"secret"',
        'Cache-Control': 'public, max-age=60',
        'Content-Length': String(SECRET.length),
        'Content-Type': 'text/plain',
      })
    case 'waits':
      await scene.hold.wait()
      return context.json({ sold: true })
  }
}
