import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { exposedHeaders, privateCacheControl, type Answer, type PaidAdmission } from '../x402/paywall.js'

type Operation =
  | { readonly name: 'head' }
  | { readonly name: 'write'; readonly args: Parameters<ServerResponse['write']> }
  | { readonly name: 'end'; readonly args: Parameters<ServerResponse['end']> }

/**
 * Holds back everything the handler says, head and content, until the payment has bought it: `writeHead`, `write`,
 * `end`, `flushHeaders` and whatever is built on them (`json`, `sendFile`, pipes, event streams). The first of them
 * decides, by its status. Afterwards the response is the ordinary one again, and what was held back follows in order.
 *
 *     open ── first operation ──▶ deciding ──▶ passed | replaced
 *       └──── closed before that ──▶ released
 */
export function gate(response: ServerResponse, admission: PaidAdmission): void {
  const { write, end, writeHead, flushHeaders } = response
  const held: Operation[] = []
  let state: 'open' | 'deciding' | 'done' = 'open'
  let ended = false

  response.once('close', () => {
    if (state !== 'open') return
    state = 'done'
    restore()
    void admission.release()
  })

  function decide(): void {
    if (state !== 'open') return
    state = 'deciding'
    admission.finish(response.statusCode).then(
      (outcome) => ('answer' in outcome ? replace(outcome.answer) : pass(outcome.headers)),
      // `finish` answers for what is broken; what it throws is a defect, and nothing may leave then.
      (error: unknown) => {
        restore()
        response.destroy(error instanceof Error ? error : undefined)
      },
    )
  }

  function restore(): void {
    Object.assign(response, { write, end, writeHead, flushHeaders })
    Reflect.deleteProperty(response, 'headersSent')
    Reflect.deleteProperty(response, 'writableEnded')
  }

  function pass(headers: Record<string, string>): void {
    state = 'done'
    restore()
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    if (Object.keys(headers).length > 0) {
      response.setHeader('Cache-Control', privateCacheControl(headerText(response.getHeader('Cache-Control'))))
      exposeToBrowsers(response)
    }
    for (const operation of held) {
      if (operation.name === 'head') response.flushHeaders()
      else if (operation.name === 'write') Reflect.apply(response.write, response, operation.args)
      else Reflect.apply(response.end, response, operation.args)
    }
    if (!ended) response.emit('drain')
  }

  function replace(answer: Answer): void {
    state = 'done'
    restore()
    for (const name of response.getHeaderNames()) {
      if (!name.startsWith('access-control-')) response.removeHeader(name)
    }
    sendAnswer(response, answer)
  }

  Object.assign(response, {
    writeHead(status: number, ...rest: unknown[]) {
      if (state === 'open') applyHead(response, status, rest)
      held.push({ name: 'head' })
      decide()
      return response
    },
    flushHeaders() {
      held.push({ name: 'head' })
      decide()
    },
    write(...args: Parameters<ServerResponse['write']>) {
      held.push({ name: 'write', args })
      decide()
      // Full, until what is held has left: a pipe waits for `drain`.
      return false
    },
    end(...args: Parameters<ServerResponse['end']>) {
      if (ended) return response
      ended = true
      held.push({ name: 'end', args })
      decide()
      return response
    },
  })
  // What code that looks before it writes would see without the gate.
  Object.defineProperty(response, 'headersSent', { configurable: true, get: () => state !== 'open' })
  Object.defineProperty(response, 'writableEnded', { configurable: true, get: () => ended })
}

/** Sends an answer that is not the handler's. */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
  response.setHeader('Content-Length', Buffer.byteLength(answer.body))
  exposeToBrowsers(response)
  response.end(answer.body)
}

/** The arguments of `writeHead`, set as headers, so that ours can be merged with them. */
function applyHead(response: ServerResponse, status: number, rest: readonly unknown[]): void {
  response.statusCode = status
  const [first, second] = rest
  if (typeof first === 'string') response.statusMessage = first
  const headers = (typeof first === 'string' ? second : first) as OutgoingHttpHeaders | OutgoingHttpHeader[] | undefined
  if (Array.isArray(headers)) {
    const pairs = Array.isArray(headers[0]) ? (headers as unknown as OutgoingHttpHeader[][]).flat() : headers
    for (let i = 0; i + 1 < pairs.length; i += 2) response.appendHeader(String(pairs[i]), headerText(pairs[i + 1]) ?? '')
    return
  }
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (value !== undefined) response.setHeader(name, value)
  }
}

function exposeToBrowsers(response: ServerResponse): void {
  if (response.getHeader('Access-Control-Allow-Origin') === undefined) return
  response.setHeader(
    'Access-Control-Expose-Headers',
    exposedHeaders(headerText(response.getHeader('Access-Control-Expose-Headers'))),
  )
}

function headerText(value: OutgoingHttpHeader | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value?.toString()
}
