import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler, type Response, type Router } from 'express'
import { paywall } from '../../src/express/index.js'
import { largeChunks, SECRET, type Behaviour, type Framework, type Scene, type ShopSpec } from '../x402/support/shop.js'

/** Express 5, as an app would use it. */
export const expressFramework: Framework = {
  name: 'Express',
  async build(spec, options, scene) {
    const charge = paywall(options)
    const app = express()
    for (const middleware of before(spec)) app.use(middleware)
    place(app, spec, charge(termsOf(spec)), (request, response) => behave(scene.next(), scene, request, response))
    const onError: ErrorRequestHandler = (error: Error & { status?: number }, _request, response, next) => {
      if (response.headersSent) return next(error)
      response.status(error.status ?? 500).json({ handled: error.message })
    }
    app.use(onError)
    const server = app.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return { server, ready: charge.ready, close: charge.close }
  },
}

function termsOf({ price = '0.25', description, mimeType }: ShopSpec) {
  return {
    price: typeof price === 'string' ? price : (request: Request) => price((name) => request.get(name)),
    ...(description === undefined ? {} : { description }),
    ...(mimeType === undefined ? {} : { mimeType }),
  }
}

function before({ cors, presets, overrides }: ShopSpec): RequestHandler[] {
  const middleware: RequestHandler[] = []
  if (overrides === true) {
    middleware.push((request, _response, next) => {
      request.method = request.get('x-http-method-override') ?? request.method
      next()
    })
  }
  if (cors === true) {
    middleware.push((_request, response, next) => {
      response.set({ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': 'X-App', 'Access-Control-Allow-Headers': 'Content-Type' })
      next()
    })
  }
  if (presets === true) {
    middleware.push((_request, response, next) => {
      response.set({ 'Cache-Control': 'public, max-age=600', 'X-App': 'shop' })
      next()
    })
  }
  return middleware
}

function place(app: Express, spec: ShopSpec, charge: RequestHandler, handler: RequestHandler): void {
  const validate: RequestHandler = (request, response, next) => {
    if (spec.validates === true && 'bad' in request.query) response.status(400).send('bad input')
    else next()
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
      const router: Router = express.Router()
      router.use(charge)
      router.all('/a', handler)
      app.use('/api', router)
    }
  }
}

async function behave(behaviour: Behaviour, scene: Scene, request: Request, response: Response): Promise<void> {
  switch (behaviour) {
    case 'json':
      response.json({ sold: true })
      return
    case 'created':
      response.status(201).send(SECRET)
      return
    case 'empty':
      response.end()
      return
    case 'no-content':
      response.status(204).end()
      return
    case 'not-modified':
      response.status(304).end()
      return
    case 'redirect':
      response.redirect('/elsewhere')
      return
    case 'not-found':
      response.status(404).send('no such thing')
      return
    case 'invalid':
      response.status(400).send('bad input')
      return
    case 'server-error':
      response.status(503).send('overloaded')
      return
    case 'throws':
      throw new Error('thrown')
    case 'rejects':
      await Promise.resolve()
      throw new Error('rejected')
    case 'throws-422':
      throw Object.assign(new Error('not like this'), { status: 422 })
    case 'chunks':
      for (const chunk of ['one ', 'two ', 'three']) {
        response.write(chunk)
        await new Promise(setImmediate)
      }
      response.end()
      return
    case 'events':
      response.writeHead(200, { 'Content-Type': 'text/event-stream' })
      response.flushHeaders()
      response.write('data: one\n\n')
      await scene.hold.wait()
      response.end('data: two\n\n')
      return
    case 'file':
      if (request.query['pipe'] === undefined) response.type('application/octet-stream').sendFile(scene.filePath)
      else createReadStream(scene.filePath).pipe(response.type('application/octet-stream'))
      return
    case 'large':
      Readable.from(largeChunks(scene), { highWaterMark: 1 }).pipe(response)
      return
    case 'headers':
      response.append('Set-Cookie', 'a=1; Path=/').append('Set-Cookie', 'b=2; Path=/')
      response.set({ ETag: '"secret"', 'Cache-Control': 'public, max-age=60', 'Content-Length': String(SECRET.length), 'Content-Type': 'text/plain' })
      response.end(SECRET)
      return
    case 'waits':
      await scene.hold.wait()
      response.json({ sold: true })
  }
}
