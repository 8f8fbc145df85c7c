import { once } from 'node:events'
import { request, type IncomingHttpHeaders } from 'node:http'
import { connect, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'

export interface HttpAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly rawHeaders: readonly string[]
  readonly body: string
}

export interface HttpAsk {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** One request over a connection of its own; follows nothing, adds nothing. */
export async function ask(port: number, { method = 'GET', path = '/', headers = {}, body }: HttpAsk = {}): Promise<HttpAnswer> {
  const sent = request({ host: '127.0.0.1', port, method, path, headers, agent: false })
  sent.end(body)
  const [response] = (await once(sent, 'response')) as [import('node:http').IncomingMessage]
  const { statusCode = 0, headers: received, rawHeaders } = response
  return { status: statusCode, headers: received, rawHeaders, body: (await buffer(response)).toString('utf8') }
}

/** A request to the byte, for targets that no client would send; the whole answer as text once the server ends it. */
export async function askRaw(port: number, text: string): Promise<string> {
  const client = rawClient(port)
  client.socket.end(text)
  await once(client.socket, 'close')
  return client.received()
}

export interface RawClient {
  readonly socket: Socket
  received(): string
  /** Resolves once what was received matches. */
  until(pattern: RegExp): Promise<void>
}

/** A connection whose bytes a test can count. */
export function rawClient(port: number): RawClient {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  const received = (): string => Buffer.concat(chunks).toString('latin1')
  let look: () => void = () => undefined
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    look()
  })
  return {
    socket,
    received,
    until: (pattern) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (pattern.test(received())) resolve()
        }
        look()
        socket.once('close', () => reject(new Error(`closed before ${pattern}: ${received()}`)))
      }),
  }
}

export function rawRequest({ method = 'GET', path = '/', headers = {} }: HttpAsk): string {
  const lines = Object.entries({ Host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}
