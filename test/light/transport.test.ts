import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { InputError } from '../../src/codec/index.js'
import { httpTransport, isNodeAway, MAX_ANSWER_BYTES, type NodeTransport } from '../../src/light/index.js'
import { refuses } from '../support/refusals.js'

const stops: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

async function served(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server: Server = createServer(handle)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  stops.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  )
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const answering = async (status: number, body: string | Uint8Array, headers: Record<string, string> = {}): Promise<NodeTransport> =>
  httpTransport(
    await served((_, response) => {
      response.writeHead(status, headers)
      response.end(body)
    }),
  )

describe('an exchange', () => {
  it('gives status and JSON as they are, whatever the status says', async () => {
    expect(await (await answering(200, '{"a":[1,null]}')).get('/v1/x')).toEqual({ status: 200, body: { a: [1, null] } })
    expect(await (await answering(422, '"no"')).get('/v1/x')).toEqual({ status: 422, body: 'no' })
  })

  it('sends the path, the query and the JSON body, and keeps a path before them', async () => {
    const seen: string[] = []
    const url = await served((request, response) => {
      let body = ''
      request.setEncoding('utf8')
      request.on('data', (chunk: string) => (body += chunk))
      request.on('end', () => {
        seen.push(`${request.method} ${request.url} ${request.headers['content-type']} ${body}`)
        response.end('{}')
      })
    })
    await httpTransport(url).get('/v1/receipts/ab?wait=1')
    await httpTransport(`${url}/sion/`).post('/v1/faucet', { amount: '1' })
    expect(seen).toEqual(['GET /v1/receipts/ab?wait=1 undefined ', 'POST /sion/v1/faucet application/json {"amount":"1"}'])
  })

  it('takes what is left of a deadline as its time, to a fraction of a millisecond', async () => {
    expect((await (await answering(200, '{}')).get('/', { timeoutMs: 4_999.7 })).status).toBe(200)
    await refuses('node_unreachable', async () => httpTransport(await served(() => {})).get('/', { timeoutMs: -3.2 }))
  })

  it('keeps characters whole that fall between two chunks', async () => {
    const bytes = Buffer.from('"π😀"')
    const url = await served((_, response) => {
      response.write(bytes.subarray(0, 4))
      setImmediate(() => response.end(bytes.subarray(4)))
    })
    expect((await httpTransport(url).get('/')).body).toBe('π😀')
  })
})

describe('what is no answer', () => {
  it('HTML, nothing, half of an answer and bytes that are no text are malformed', async () => {
    await refuses('node_malformed', async () => (await answering(200, '<html>welcome</html>')).get('/'))
    await refuses('node_malformed', async () => (await answering(404, '<html>not found</html>')).get('/'))
    await refuses('node_malformed', async () => (await answering(200, '')).get('/'))
    await refuses('node_malformed', async () => (await answering(200, '{"receipt":"AAA')).get('/'))
    await refuses('node_malformed', async () => (await answering(200, Uint8Array.of(0x22, 0xff, 0x22))).get('/'))
    await refuses('node_malformed', async () => (await answering(200, Uint8Array.of(0x22, 0xf0, 0x9f))).get('/'))
  })

  it('the error page of a proxy in front of the node is a node that is away', async () => {
    const error = await refuses('node_unavailable', async () => (await answering(502, '<html>bad gateway</html>')).get('/'))
    expect(isNodeAway(error)).toBe(true)
  })

  it('a redirect is not followed, wherever it leads', async () => {
    let followed = false
    const target = await served((_, response) => {
      followed = true
      response.end('{}')
    })
    for (const status of [301, 302, 303, 307, 308]) {
      await refuses('node_malformed', async () => (await answering(status, '{}', { location: target })).get('/'))
    }
    expect(followed).toBe(false)
  })

  it('more than the largest answer is not read to its end', async () => {
    let sent = 0
    const url = await served((_, response) => {
      const chunk = Buffer.alloc(256 * 1024, ' ')
      const more = (): void => {
        while (!response.destroyed && sent < 20 * MAX_ANSWER_BYTES) {
          sent += chunk.length
          if (!response.write(chunk)) {
            response.once('drain', more)
            return
          }
        }
      }
      more()
    })
    await refuses('node_malformed', () => httpTransport(url).get('/'))
    expect(sent).toBeLessThan(3 * MAX_ANSWER_BYTES)
  })

  it('a small answer that unpacks to a huge one is cut off too', async () => {
    const { gzipSync } = await import('node:zlib')
    const bomb = gzipSync(Buffer.alloc(4 * MAX_ANSWER_BYTES, ' '))
    await refuses('node_malformed', async () => (await answering(200, bomb, { 'content-encoding': 'gzip' })).get('/'))
  })

  it('an answer that does not begin, or does not end, is given up in time', async () => {
    const silent = await served(() => {})
    const error = await refuses('node_unreachable', () => httpTransport(silent).get('/', { timeoutMs: 50 }))
    expect(error.message).toContain('no answer within 50 ms')
    const trickling = await served((_, response) => {
      const timer = setInterval(() => response.write(' '), 5)
      response.on('close', () => clearInterval(timer))
    })
    await refuses('node_unreachable', () => httpTransport(trickling).get('/', { timeoutMs: 50 }))
  })

  it('a connection that breaks, or speaks another protocol, is a node out of reach', async () => {
    const broken = await served((_, response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('{"a":')
      setImmediate(() => response.destroy())
    })
    await refuses('node_unreachable', () => httpTransport(broken).get('/'))
    const server = createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.write('SSH-2.0-OpenSSH\r\n', () => socket.destroy())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    stops.push(() => new Promise((resolve) => server.close(() => resolve())))
    await refuses('node_unreachable', () => httpTransport(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).get('/'))
  })

  it('no node at the address: what happened, where, and what to do', async () => {
    const url = await served(() => {})
    await stops.pop()!()
    const error = await refuses('node_unreachable', () => httpTransport(url).get('/v1/status'))
    expect(error.message).toBe(`cannot reach the node at ${url}/v1/status (ECONNREFUSED): is one running there? "sion devnet" starts one`)
    expect(error.cause).toBeInstanceOf(Error)
    expect(isNodeAway(error)).toBe(true)
  })

  it('the caller’s own signal gives up with its own reason, before and during the exchange', async () => {
    const silent = await served(() => {})
    await expect(httpTransport(silent).get('/', { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before')
    const during = new AbortController()
    const waiting = expect(httpTransport(silent).get('/', { signal: during.signal })).rejects.toThrow('during')
    setTimeout(() => during.abort(new Error('during')), 20)
    await waiting
  })
})

describe('an address', () => {
  it('that is none is refused when the transport is made', () => {
    for (const wrong of ['', 'localhost:8730', '127.0.0.1:8730', 'ftp://x', 'file:///etc/passwd', 'http://', 'http://u:p@x', 'http://x/?a=1', 'http://x/#a']) {
      expect(() => httpTransport(wrong)).toThrow(InputError)
      expect(() => httpTransport(wrong)).toThrow(/^node: /)
    }
  })

  it('does not show a password that was in it', () => {
    expect(() => httpTransport('http://u:hunter2@x')).toThrow(expect.not.objectContaining({ message: expect.stringContaining('hunter2') }))
  })
})
