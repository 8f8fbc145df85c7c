import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough, pipeline, Readable } from 'node:stream'
import { createGzip, gunzipSync } from 'node:zlib'
import express from 'express'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { gate } from '../../src/express/gate.js'
import type { Answer, PaidAdmission } from '../../src/x402/paywall.js'
import { ask, rawClient, rawRequest, type HttpAnswer } from '../x402/support/http.js'
import { gateOf } from '../x402/support/watched-store.js'

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

const REPLACEMENT: Answer = { status: 503, headers: { 'Content-Type': 'application/json', 'Retry-After': '2' }, body: '{"error":"away"}' }

/** A server whose every request is paid, and what the gate asked of the payment. */
interface Gated {
  readonly port: number
  readonly statuses: number[]
  released: number
  /** Holds the decision until it opens. */
  readonly deciding: ReturnType<typeof gateOf>
  get(headers?: Record<string, string>): Promise<HttpAnswer>
}

describe('the gate before a Node response', () => {
  const servers: Server[] = []
  const unhandled: unknown[] = []
  const note = (error: unknown): void => void unhandled.push(error)
  beforeAll(() => {
    process.on('unhandledRejection', note)
    process.on('uncaughtException', note)
  })
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
    await new Promise(setImmediate)
    expect(unhandled.splice(0)).toEqual([])
  })
  afterAll(() => {
    process.off('unhandledRejection', note)
    process.off('uncaughtException', note)
  })

  async function serve(handler: Handler, options: { before?: (response: ServerResponse) => void; replaced?: boolean; held?: boolean } = {}): Promise<Gated> {
    const { before, replaced = false, held = false } = options
    const deciding = gateOf()
    if (!held) deciding.open()
    const admission = (): PaidAdmission => ({
      kind: 'paid',
      settlement: { success: true, transaction: 'ab', network: 'sion:ab' },
      async finish(status) {
        gated.statuses.push(status)
        await deciding.wait()
        if (replaced) return { answer: REPLACEMENT }
        return { headers: status < 500 ? { 'PAYMENT-RESPONSE': 'bought' } : {} }
      },
      async release() {
        gated.released++
      },
    })
    const server = createServer((request, response) => {
      before?.(response)
      gate(response, admission())
      void handler(request, response)
    })
    servers.push(server)
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    const gated: Gated = {
      port: (server.address() as AddressInfo).port,
      statuses: [],
      released: 0,
      deciding,
      get: (headers = {}) => ask(gated.port, { headers }),
    }
    return gated
  }

  describe('lets through what Node would have sent', () => {
    it('a length for a body that ends at once, chunks for one that does not', async () => {
      const once = await (await serve((_, response) => response.end('héllo'))).get()
      expect([once.headers['content-length'], once.headers['transfer-encoding'], once.body]).toEqual(['6', undefined, 'héllo'])
      const inParts = await (await serve((_, response) => response.write('a') && response.end('b') || response.end('b'))).get()
      expect([inParts.headers['content-length'], inParts.headers['transfer-encoding'], inParts.body]).toEqual([undefined, 'chunked', 'ab'])
    })

    it('writeHead with headers in an object, over those that were set before', async () => {
      const gated = await serve((_, response) => {
        response.setHeader('X-A', 'set')
        response.setHeader('X-B', 'set')
        response.writeHead(201, 'Made', { 'X-A': 'written', 'Set-Cookie': ['a=1', 'b=2'], 'X-Number': 5 })
        response.end('body')
      })
      const answer = await gated.get()
      expect([answer.status, gated.statuses]).toEqual([201, [201]])
      expect(answer.headers).toMatchObject({ 'x-a': 'written', 'x-b': 'set', 'set-cookie': ['a=1', 'b=2'], 'x-number': '5', 'payment-response': 'bought', 'cache-control': 'private' })
    })

    it.each<[string, readonly unknown[]]>([
      ['flat', ['X-A', 'one', 'X-A', 'two', 'Set-Cookie', ['a=1', 'b=2'], 'Cache-Control', 'public, max-age=5']],
      ['in pairs', [['X-A', 'one'], ['X-A', 'two'], ['Set-Cookie', ['a=1', 'b=2']], ['Cache-Control', 'public, max-age=5']]],
    ])('writeHead with headers in an array, %s, over those that were set before', async (_, headers) => {
      const gated = await serve((_, response) => {
        response.setHeader('x-a', 'set')
        response.setHeader('Cache-Control', 'no-cache')
        response.writeHead(200, headers as string[])
        response.end('body')
      })
      const answer = await gated.get()
      expect(answer.headers).toMatchObject({ 'x-a': 'one, two', 'set-cookie': ['a=1', 'b=2'], 'cache-control': 'private, max-age=5' })
    })

    it('the phrase of a status', async () => {
      const gated = await serve((_, response) => response.writeHead(299, 'All Fine').end())
      const client = rawClient(gated.port)
      client.socket.write(rawRequest({ headers: { Connection: 'close' } }))
      await client.until(/HTTP\/1\.1 299 All Fine\r\n/)
      client.socket.destroy()
    })

    it('trailers', async () => {
      const gated = await serve((_, response) => {
        response.setHeader('Trailer', 'X-Sum')
        response.write('body')
        response.addTrailers({ 'X-Sum': '42' })
        response.end()
      })
      const client = rawClient(gated.port)
      client.socket.write(rawRequest({ headers: { Connection: 'close' } }))
      await client.until(/0\r\nX-Sum: 42\r\n\r\n$/)
      client.socket.destroy()
    })

    it('writes in order, with their encodings and callbacks, and `finish` and `close` after them', async () => {
      const heard: string[] = []
      const closed = gateOf()
      const gated = await serve((_, response) => {
        response.once('finish', () => heard.push('finish'))
        response.once('close', () => {
          heard.push('close')
          closed.open()
        })
        response.write('w', () => heard.push('first'))
        response.write('6869', 'hex', () => heard.push('second'))
        response.write(new Uint8Array([33]))
        response.end('ZW5k', 'base64', () => heard.push('end'))
      })
      expect((await gated.get()).body).toBe('whi!end')
      await closed.opened
      expect(heard).toEqual(expect.arrayContaining(['first', 'second', 'end', 'finish', 'close']))
      expect(heard.indexOf('first')).toBeLessThan(heard.indexOf('second'))
      expect(heard.at(-1)).toBe('close')
    })

    it('a pipeline, which is told of its end', async () => {
      const ended = gateOf()
      const gated = await serve((_, response) => {
        pipeline(Readable.from([Buffer.from('a'), Buffer.from('b'), Buffer.from('c')]), new PassThrough(), response, (error) => {
          if (error === null || error === undefined) ended.open()
          else ended.fail(error)
        })
      })
      expect((await gated.get()).body).toBe('abc')
      await ended.opened
    })

    it('an answer whose handler waits for `drain`', async () => {
      const gated = await serve(async (_, response) => {
        for (let i = 0; i < 100; i++) {
          if (!response.write(Buffer.alloc(20_000, 97))) await new Promise((resolve) => response.once('drain', resolve))
        }
        response.end()
      })
      expect((await gated.get()).body).toHaveLength(2_000_000)
    })
  })

  describe('fixes the head by the first operation, as Node does', () => {
    it('a second answer changes nothing of the first', async () => {
      const gated = await serve(
        (_, response) => {
          response.setHeader('Content-Length', 5)
          response.end('first')
          response.statusCode = 500
          response.setHeader('Content-Length', 30)
          response.setHeader('X-Late', 'late')
          response.end('second'.repeat(5))
          gated.deciding.open()
        },
        { held: true },
      )
      const answer = await gated.get()
      expect([answer.status, answer.body, answer.headers['content-length'], answer.headers['x-late']]).toEqual([200, 'first', '5', undefined])
      expect(gated.statuses).toEqual([200])
    })

    it('an error after the first chunk does not make a bought answer a 500', async () => {
      const gated = await serve((_, response) => {
        response.write('some')
        response.statusCode = 500
        response.end(' more')
      })
      const answer = await gated.get()
      expect([answer.status, answer.body, answer.headers['payment-response']]).toEqual([200, 'some more', 'bought'])
    })

    it('shows that head and end were sent, to code that looks before it writes', async () => {
      const seen: unknown[] = []
      const gated = await serve((_, response) => {
        seen.push([response.headersSent, response.writableEnded])
        response.write('a')
        seen.push([response.headersSent, response.writableEnded])
        response.end()
        seen.push([response.headersSent, response.writableEnded])
      })
      await gated.get()
      expect(seen).toEqual([[false, false], [true, false], [true, true]])
    })
  })

  describe('refuses at once what Node refuses at once', () => {
    it.each<[string, (response: ServerResponse) => unknown, string]>([
      ['a status over 999', (response) => response.writeHead(1_000), 'ERR_HTTP_INVALID_STATUS_CODE'],
      ['a status under 100', (response) => response.writeHead(42), 'ERR_HTTP_INVALID_STATUS_CODE'],
      ['a status set to nonsense', (response) => {
        response.statusCode = Number.NaN
        response.end('x')
      }, 'ERR_HTTP_INVALID_STATUS_CODE'],
      ['an object for a chunk', (response) => response.write({}), 'ERR_INVALID_ARG_TYPE'],
      ['a number for the last chunk', (response) => response.end(5), 'ERR_INVALID_ARG_TYPE'],
      ['null for a chunk', (response) => response.write(null), 'ERR_STREAM_NULL_VALUES'],
    ])('%s: the handler hears it, nothing is decided, and it can still answer', async (_, act, code) => {
      const gated = await serve((_, response) => {
        expect(() => act(response)).toThrow(expect.objectContaining({ code }))
        response.statusCode = 500
        response.end('sorry')
      })
      const answer = await gated.get()
      expect([answer.status, answer.body, gated.statuses]).toEqual([500, 'sorry', [500]])
    })
  })

  describe('beside middleware that wraps the same methods', () => {
    const text = 'all work and no play '.repeat(500)
    const handlers: [string, Handler][] = [
      ['at once', (_, response) => response.end(text)],
      ['in parts', async (_, response) => {
        response.write(text.slice(0, 5_000))
        await new Promise(setImmediate)
        response.write(text.slice(5_000))
        response.end()
      }],
      ['after writeHead', (_, response) => response.writeHead(200, { 'Content-Length': text.length }).end(text)],
      ['through a pipe', (_, response) => Readable.from([Buffer.from(text)]).pipe(response)],
    ]
    for (const [how, handler] of handlers) {
      it(`compression before the gate compresses an answer that is sent ${how}`, async () => {
        const answer = await rawBody((await serve(handler, { before: compress })).port)
        expect(answer.head).toMatch(/content-encoding: gzip/i)
        expect(answer.head).toMatch(/payment-response: bought/i)
        expect(gunzipSync(answer.body).toString()).toBe(text)
      })

      it(`compression after the gate compresses an answer that is sent ${how}`, async () => {
        const gated = await serve((request, response) => {
          compress(response)
          return handler(request, response)
        })
        const answer = await rawBody(gated.port)
        expect(answer.head).toMatch(/content-encoding: gzip/i)
        expect(answer.head).toMatch(/cache-control: private/i)
        expect(gunzipSync(answer.body).toString()).toBe(text)
      })
    }

    it('a session after the gate sets its cookie when the head is written, once, and ours are merged over it', async () => {
      let calls = 0
      const gated = await serve((_, response) => {
        onHead(response, () => {
          calls++
          response.appendHeader('Set-Cookie', 'session=1')
          response.setHeader('Cache-Control', 'public, max-age=9')
        })
        response.write('a')
        response.end('b')
      })
      const answer = await gated.get()
      expect([calls, answer.headers['set-cookie'], answer.headers['cache-control']]).toEqual([1, ['session=1'], 'private, max-age=9'])
    })

    it('and of neither kind anything is left in an answer that takes the handler’s place', async () => {
      const gated = await serve(
        (_, response) => {
          compress(response)
          onHead(response, () => response.setHeader('Set-Cookie', 'session=1'))
          response.write(text)
          response.end(text)
        },
        { replaced: true },
      )
      const answer = await gated.get()
      expect([answer.status, answer.body]).toEqual([503, REPLACEMENT.body])
      expect(answer.headers).toMatchObject({ 'content-type': 'application/json', 'retry-after': '2', 'content-length': String(REPLACEMENT.body.length) })
      for (const name of ['set-cookie', 'content-encoding', 'transfer-encoding']) expect(answer.headers).not.toHaveProperty(name)
    })
  })

  describe('where another answer takes the handler’s place', () => {
    it('a handler that streams on is heard no more, and not killed for it', async () => {
      const stopped = gateOf()
      const errors: unknown[] = []
      const gated = await serve(
        (_, response) => {
          const timer = setInterval(() => response.write('tick', (error) => errors.push(error)), 1)
          response.once('close', () => {
            clearInterval(timer)
            response.write('after the end')
            response.end('again')
            stopped.open()
          })
          response.write('first', (error) => errors.push(error))
        },
        { replaced: true },
      )
      const answer = await gated.get()
      await stopped.opened
      expect([answer.status, answer.body]).toEqual([503, REPLACEMENT.body])
      expect(errors.length).toBeGreaterThan(0)
      for (const error of errors) expect(error).toMatchObject({ code: 'ERR_STREAM_DESTROYED' })
    })

    it('a pipe ends, and the callback of `end` is called', async () => {
      const ended = gateOf()
      const gated = await serve((_, response) => response.end('x', () => ended.open()), { replaced: true })
      expect((await gated.get()).status).toBe(503)
      await ended.opened
      const piped = await serve((_, response) => Readable.from(['a', 'b'].map((text) => Buffer.from(text))).pipe(response), { replaced: true })
      expect((await piped.get()).body).toBe(REPLACEMENT.body)
    })

    it('its phrase, and the headers of a longer body, are not those of the handler', async () => {
      const gated = await serve(
        (_, response) => response.writeHead(200, 'Here You Are', { 'Content-Length': 5_000, 'Content-Encoding': 'br', 'Content-Range': 'bytes 0-1/2' }).end('x'.repeat(5_000)),
        { replaced: true },
      )
      const client = rawClient(gated.port)
      client.socket.write(rawRequest({ headers: { Connection: 'close' } }))
      await client.until(/\}$/)
      expect(client.received()).toMatch(/^HTTP\/1\.1 503 Service Unavailable\r\n/)
      expect(client.received()).not.toMatch(/5000|content-encoding|content-range|Here/i)
      client.socket.destroy()
    })
  })

  it('sends no interim response with hints about what is not bought yet', async () => {
    const gated = await serve((_, response) => {
      response.writeEarlyHints({ link: '</secret.css>; rel=preload' })
      response.writeProcessing()
      response.end('body')
    })
    const client = rawClient(gated.port)
    client.socket.write(rawRequest({ headers: { Connection: 'close' } }))
    await client.until(/body/)
    expect(client.received()).toMatch(/^HTTP\/1\.1 200/)
    expect(client.received()).not.toContain('secret.css')
    client.socket.destroy()
  })

  it('passes an answer from 500 on without a word of the payment', async () => {
    const gated = await serve((_, response) => response.writeHead(502, { 'Cache-Control': 'public' }).end('bad'))
    const answer = await gated.get()
    expect([answer.status, answer.body, answer.headers['cache-control'], answer.headers['payment-response']]).toEqual([502, 'bad', 'public', undefined])
  })

  it('sends nothing, and ends the connection, when what decides is broken', async () => {
    const gated = await serve((_, response) => response.end('secret'), { held: true })
    gated.deciding.fail(new Error('a defect'))
    const client = rawClient(gated.port)
    const closed = new Promise((resolve) => client.socket.once('close', resolve))
    client.socket.write(rawRequest({}))
    await closed
    expect(client.received()).toBe('')
  })
})

describe('an Express route', () => {
  it('answers ranges and validators of a file as without the paywall', async () => {
    const { openShop } = await import('../x402/support/shop.js')
    const { expressFramework } = await import('./framework.js')
    const shop = await openShop(expressFramework, { handler: 'file' }, new URL(import.meta.url).pathname)
    try {
      const part = await shop.buy({ headers: { Range: 'bytes=0-5' } })
      expect([part.status, part.body, part.headers['cache-control']]).toEqual([206, 'import', expect.stringMatching(/^private/)])
      const whole = await shop.buy()
      const same = await shop.buy({ headers: { 'If-None-Match': String(whole.headers.etag) } })
      expect([same.status, same.body]).toEqual([304, ''])
    } finally {
      await shop.stop()
    }
  })

  it('that the app’s own time limit answers while the payment settles runs no handler, and the payment is good', async () => {
    const { paywall } = await import('../../src/express/index.js')
    const { fakeFacilitator } = await import('../x402/support/fake-facilitator.js')
    const { watchedStore } = await import('../x402/support/watched-store.js')
    const { CHAIN, pay, PAYEE } = await import('../x402/support/payments.js')
    const { quoted } = await import('../x402/support/shop.js')
    const facilitator = fakeFacilitator()
    const store = watchedStore()
    const charge = paywall({ payTo: PAYEE, chain: CHAIN, store, facilitator })
    const settling = gateOf()
    let handled = 0
    const app = express()
    app.use((_request, response, next) => {
      void settling.reached.then(() => {
        if (!response.headersSent) response.status(504).send('too slow')
      })
      next()
    })
    app.get('/a', charge('0.25'), (_request, response) => {
      handled++
      response.send('sold')
    })
    const server = app.listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const { header } = pay(quoted(await ask(port, { path: '/a' })))
    const { settle } = facilitator
    facilitator.settle = async (payment, requirements, asker) => {
      const settled = await settle(payment, requirements, asker)
      await settling.wait()
      return settled
    }
    const answer = await ask(port, { path: '/a', headers: { 'PAYMENT-SIGNATURE': header } })
    expect([answer.status, answer.body]).toEqual([504, 'too slow'])
    settling.open()
    await store.releasedTimes(1)
    expect(handled).toBe(0)
    await new Promise((resolve) => server.close(resolve))
    await charge.close()
  })
})

/** Calls back once before a head is written, as `on-headers` does for sessions and response times. */
function onHead(response: ServerResponse, listener: () => void): void {
  const { writeHead } = response
  let called = false
  Object.assign(response, {
    writeHead(status: number, headers: Record<string, string | number> = {}) {
      response.statusCode = status
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      if (!called) {
        called = true
        listener()
      }
      return Reflect.apply(writeHead, response, [status]) as ServerResponse
    },
  })
}

/** Compresses what is written from now on, in the way that the `compression` middleware does. */
function compress(response: ServerResponse): void {
  const { write, end } = response
  let gzip: ReturnType<typeof createGzip> | undefined
  const implyHead = (): void => {
    if (!response.headersSent && gzip === undefined) response.writeHead(response.statusCode)
  }
  onHead(response, () => {
    gzip = createGzip()
    response.setHeader('Content-Encoding', 'gzip')
    response.removeHeader('Content-Length')
    gzip.on('data', (chunk: Buffer) => {
      if (Reflect.apply(write, response, [chunk]) === false) gzip?.pause()
    })
    gzip.on('end', () => void Reflect.apply(end, response, []))
    response.on('drain', () => gzip?.resume())
  })
  Object.assign(response, {
    write(chunk: string | Uint8Array) {
      implyHead()
      return gzip === undefined ? Reflect.apply(write, response, [chunk]) : gzip.write(chunk)
    },
    end(chunk?: string | Uint8Array) {
      implyHead()
      if (gzip === undefined) return Reflect.apply(end, response, chunk === undefined ? [] : [chunk])
      gzip.end(chunk)
      return response
    },
  })
}

/** Head and de-chunked body of an answer, to the byte. */
async function rawBody(port: number): Promise<{ head: string; body: Buffer }> {
  const client = rawClient(port)
  client.socket.write(rawRequest({ headers: { Connection: 'close' } }))
  await new Promise((resolve) => client.socket.once('close', resolve))
  const bytes = Buffer.from(client.received(), 'latin1')
  const split = bytes.indexOf('\r\n\r\n')
  const parts: Buffer[] = []
  for (let at = split + 4; ; ) {
    const line = bytes.indexOf('\r\n', at)
    const length = Number.parseInt(bytes.subarray(at, line).toString(), 16)
    if (!(length > 0)) break
    parts.push(bytes.subarray(line + 2, line + 2 + length))
    at = line + 2 + length + 2
  }
  return { head: bytes.subarray(0, split).toString(), body: Buffer.concat(parts) }
}
