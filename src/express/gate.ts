import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { corsHeaders, keptOnReplacement, privateCacheControl } from '../x402/answer-headers.js'
import { PAYMENT_RESPONSE } from '../x402/headers.js'
import type { Answer, PaidAdmission } from '../x402/paywall.js'
import { keptHeaders, MAX_KEPT_BYTES, type KeptAnswer } from '../x402/replays.js'

type Callback = (error?: Error | null) => void

/** What the handler said while the gate was closed, in order. */
type Operation =
  | { readonly name: 'head' }
  | { readonly name: 'flush' }
  | { readonly name: 'write'; readonly args: readonly unknown[] }
  | { readonly name: 'end'; readonly args: readonly unknown[] }

/** Everything by which a response lets bytes out. */
const GATED = ['writeHead', 'flushHeaders', 'write', 'end', 'writeEarlyHints', 'writeProcessing'] as const

/**
 * Lets the handler's answer out when the payment has bought it. Where the payment is this request's for certain, the
 * head is marked as it leaves and nothing is held back; else everything is, until that is known.
 */
export function gate(response: ServerResponse, admission: PaidAdmission): void {
  const { finishNow, keep } = admission
  // Underneath the gate: what it sees has been bought.
  if (keep !== undefined) keepAnswer(response, keep)
  if (finishNow === undefined) holdBack(response, admission)
  else markHead(response, admission, finishNow)
}

/** Collects what leaves, and hands it over before the last of it does. */
function keepAnswer(response: ServerResponse, keep: NonNullable<PaidAdmission['keep']>): void {
  const { write, end } = response
  let chunks: Buffer[] | undefined = []
  let bytes = 0
  const collect = (args: readonly unknown[]): void => {
    const [chunk, encoding] = args
    if (chunks === undefined || (typeof chunk !== 'string' && !(chunk instanceof Uint8Array))) return
    const piece = typeof chunk === 'string' ? Buffer.from(chunk, isEncoding(encoding) ? encoding : 'utf8') : Buffer.from(chunk)
    bytes += piece.length
    if (bytes > MAX_KEPT_BYTES) chunks = undefined
    else chunks.push(piece)
  }
  Object.assign(response, {
    write(...args: unknown[]): boolean {
      collect(args)
      return Reflect.apply(write, response, args)
    },
    end(...args: unknown[]): ServerResponse {
      collect(args)
      const whole = chunks
      chunks = undefined
      const result: ServerResponse = Reflect.apply(end, response, args)
      // Only now the head is what it was sent as; the bytes are on their way, and the next event is not.
      if (whole !== undefined && response.hasHeader(PAYMENT_RESPONSE)) {
        keep({ status: response.statusCode, headers: keptHeaders(headersOf(response)), body: Buffer.concat(whole) })
      }
      return result
    },
  })
}

function* headersOf(response: ServerResponse): Generator<[string, string | string[]]> {
  for (const [name, value] of Object.entries(response.getHeaders())) {
    if (value !== undefined) yield [name, typeof value === 'number' ? String(value) : value]
  }
}

function isEncoding(value: unknown): value is BufferEncoding {
  return typeof value === 'string' && Buffer.isEncoding(value)
}

/**
 * Marks the head as it leaves. Only an answer that says the handler failed waits, for its payment to be good again: its
 * client may come back with it at once, and to another server.
 */
function markHead(
  response: ServerResponse,
  admission: PaidAdmission,
  finishNow: (status: number) => Record<string, string>,
): void {
  const { writeHead, end } = response
  let decided = false
  const decide = (): boolean => {
    if (decided) return false
    decided = true
    response.off('close', left)
    return true
  }
  const left = (): void => {
    if (decide()) void admission.release()
  }
  response.on('close', left)
  Object.assign(response, {
    writeHead(status: number, ...rest: unknown[]): ServerResponse {
      if (!decide()) return Reflect.apply(writeHead, response, [status, ...rest])
      applyHead(response, checkedStatus(status), rest)
      addPaymentHeaders(response, finishNow(response.statusCode))
      return Reflect.apply(writeHead, response, [response.statusCode])
    },
    end(...args: unknown[]): ServerResponse {
      if (response.statusCode < 500 || !decide()) return Reflect.apply(end, response, args)
      void admission.finish(response.statusCode).finally(() => Reflect.apply(end, response, args))
      return response
    },
  })
}

/**
 * Holds back everything the handler says, head and content, until the payment has bought it: `writeHead`, `write`,
 * `end`, `flushHeaders` and whatever is built on them (`json`, `sendFile`, pipes, event streams). The first of them
 * decides, by its status. Afterwards the response is the ordinary one again, and what was held back follows in order.
 *
 *     open ── first operation ──▶ deciding ──▶ passed | replaced
 *       └──── closed before that ──▶ left         └──▶ left, when the client is gone by then
 *
 * As in Node, the head is fixed by the first operation: what the handler changes afterwards does not reach it. Middleware
 * may wrap the same methods before the gate (it sees what leaves) or after it (it sees what the handler says), so the gate
 * calls the methods it found, and never puts back a method that somebody else has wrapped meanwhile.
 */
function holdBack(response: ServerResponse, admission: PaidAdmission): void {
  const found = Object.fromEntries(GATED.map((name) => [name, response[name]])) as Pick<ServerResponse, (typeof GATED)[number]>
  const held: Operation[] = []
  let state: 'open' | 'deciding' | 'passed' | 'replaced' | 'left' = 'open'
  let ended = false
  let head: Head | undefined
  let impliedHead = false

  const ours = {
    writeHead(status: number, ...rest: unknown[]): ServerResponse {
      if (!isHolding()) return state === 'replaced' ? response : call(found.writeHead, [status, ...rest])
      if (state === 'open') {
        applyHead(response, checkedStatus(status), rest)
        if (!impliedHead) held.push({ name: 'head' })
        decide()
      }
      return response
    },
    flushHeaders(): void {
      if (!isHolding()) return state === 'replaced' ? undefined : call(found.flushHeaders, [])
      implyHead()
      held.push({ name: 'flush' })
    },
    write(...args: unknown[]): boolean {
      if (!isHolding()) return state === 'replaced' ? dropped(args) : call(found.write, args)
      checkChunk(args[0])
      if (ended) return dropped(args)
      implyHead()
      held.push({ name: 'write', args })
      // Full, until what is held has left: a pipe waits for `drain`.
      return false
    },
    end(...args: unknown[]): ServerResponse {
      if (!isHolding()) return state === 'replaced' ? response : call(found.end, args)
      if (ended) return response
      if (args[0] !== undefined && args[0] !== null && typeof args[0] !== 'function') checkChunk(args[0])
      implyHead()
      ended = true
      held.push({ name: 'end', args })
      return response
    },
    // Interim responses are hints about the content: dropped while it is not bought.
    writeEarlyHints(...args: unknown[]): void {
      if (state === 'passed') return call(found.writeEarlyHints, args)
      callbackIn(args)?.()
    },
    writeProcessing(): void {
      if (state === 'passed') call(found.writeProcessing, [])
    },
  }

  response.once('close', () => {
    if (state !== 'open') return
    open('left')
    void admission.release()
  })
  Object.assign(response, ours)
  // What code that looks before it writes would see without the gate.
  Object.defineProperty(response, 'headersSent', { configurable: true, get: () => state !== 'open' })
  Object.defineProperty(response, 'writableEnded', { configurable: true, get: () => ended })

  function isHolding(): boolean {
    return state === 'open' || state === 'deciding'
  }

  function call<T>(method: (...args: never[]) => T, args: readonly unknown[]): T {
    return Reflect.apply(method, response, args) as T
  }

  /** Content without a head implies one, through whatever wraps `writeHead`: a session cookie is set there, say. */
  function implyHead(): void {
    if (state !== 'open') return
    impliedHead = true
    try {
      response.writeHead(response.statusCode)
    } finally {
      impliedHead = false
    }
    // Where a wrapper did not pass it on.
    decide()
  }

  function decide(): void {
    if (state !== 'open') return
    state = 'deciding'
    head = headOf(response)
    admission
      .finish(head.status)
      .then((outcome) => ('answer' in outcome ? replace(outcome.answer) : pass(outcome.headers)))
      // `finish` answers for what is broken. What is thrown here is a defect, and nothing more may leave then.
      .catch(() => {
        open('left')
        response.destroy()
      })
  }

  function open(next: 'passed' | 'left'): void {
    state = next
    for (const name of GATED) if (response[name] === ours[name]) Object.assign(response, { [name]: found[name] })
    showTruth()
  }

  function showTruth(): void {
    Reflect.deleteProperty(response, 'headersSent')
    Reflect.deleteProperty(response, 'writableEnded')
  }

  /** Sends by the methods that the gate found, past whatever has wrapped them since: that has seen all of it already. */
  function underneath(send: () => void): void {
    const above = Object.fromEntries(GATED.map((name) => [name, response[name]]))
    Object.assign(response, found)
    try {
      send()
    } finally {
      Object.assign(response, above)
    }
  }

  async function pass(headers: Record<string, string>): Promise<void> {
    if (response.destroyed || response.socket?.destroyed === true) {
      open('left')
      for (const { args } of held.filter((operation) => 'args' in operation)) dropped(args)
      await admission.release()
      return
    }
    open('passed')
    if (head !== undefined) restoreHead(response, head)
    addPaymentHeaders(response, headers)
    let full = false
    let wrote = false
    underneath(() => {
      for (const operation of held) {
        if (operation.name === 'head') call(found.writeHead, [response.statusCode])
        else if (operation.name === 'flush') call(found.flushHeaders, [])
        else if (operation.name === 'end') call(found.end, operation.args)
        else {
          wrote = true
          full = !call(found.write, operation.args)
        }
      }
    })
    // Who was told that the response is full waits for this; where it is full in truth, Node says so itself.
    if (wrote && !full && !ended) response.emit('drain')
  }

  function replace(answer: Answer): void {
    // The methods stay ours: a handler that streams on is heard no more.
    state = 'replaced'
    showTruth()
    for (const name of response.getHeaderNames()) {
      if (!keptOnReplacement(name)) response.removeHeader(name)
    }
    response.statusMessage = ''
    for (const operation of held) {
      if (operation.name === 'write') dropped(operation.args)
      const callback = operation.name === 'end' ? callbackIn(operation.args) : undefined
      if (callback !== undefined) response.once('finish', callback)
    }
    setAnswer(response, answer)
    underneath(() => call(found.end, [answer.body]))
  }
}

/** None where the handler failed: such an answer was not bought, and says nothing of a payment. */
function addPaymentHeaders(response: ServerResponse, headers: Record<string, string>): void {
  let bought = false
  for (const [name, value] of Object.entries(headers)) {
    response.setHeader(name, value)
    bought = true
  }
  if (!bought) return
  response.setHeader('Cache-Control', privateCacheControl(headerText(response.getHeader('Cache-Control'))))
  exposeToBrowsers(response)
}

/** Sends an answer that is not the handler's. */
export function sendAnswer(response: ServerResponse, answer: Answer): void {
  setAnswer(response, answer)
  response.end(answer.body)
}

/** Sends what was bought before, with the headers it had. */
export function sendAgain(response: ServerResponse, { status, headers, body }: KeptAnswer): void {
  response.statusCode = status
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
  response.end(body)
}

function setAnswer(response: ServerResponse, answer: Answer): void {
  response.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) response.setHeader(name, value)
  if (answer.status !== 204) response.setHeader('Content-Length', Buffer.byteLength(answer.body))
  exposeToBrowsers(response)
}

interface Head {
  readonly status: number
  readonly message: string
  readonly headers: ReadonlyMap<string, OutgoingHttpHeader>
}

function headOf(response: ServerResponse): Head {
  const headers = new Map<string, OutgoingHttpHeader>()
  for (const name of response.getHeaderNames()) {
    const value = response.getHeader(name)
    if (value !== undefined) headers.set(name, Array.isArray(value) ? [...value] : value)
  }
  return { status: response.statusCode, message: response.statusMessage, headers }
}

function restoreHead(response: ServerResponse, { status, message, headers }: Head): void {
  response.statusCode = status
  response.statusMessage = message
  for (const name of response.getHeaderNames()) if (!headers.has(name)) response.removeHeader(name)
  for (const [name, value] of headers) if (response.getHeader(name) !== value) response.setHeader(name, value)
}

/** The arguments of `writeHead` after the status, set as headers so that ours can be merged with them. */
function applyHead(response: ServerResponse, status: number, rest: readonly unknown[]): void {
  response.statusCode = status
  const [first, second] = rest
  if (typeof first === 'string') response.statusMessage = first
  const headers = (typeof first === 'string' ? second : (first ?? second)) as
    | OutgoingHttpHeaders
    | OutgoingHttpHeader[]
    | undefined
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers ?? {})) {
      if (value !== undefined) response.setHeader(name, value)
    }
    return
  }
  // As Node: they replace what was set before, and may name one header more than once.
  const pairs = Array.isArray(headers[0]) ? (headers as unknown as OutgoingHttpHeader[][]).flat() : headers
  for (let i = 0; i + 1 < pairs.length; i += 2) response.removeHeader(String(pairs[i]))
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const value = pairs[i + 1] ?? ''
    response.appendHeader(String(pairs[i]), typeof value === 'number' ? String(value) : value)
  }
}

/** Node refuses these at once; the gate must too, since nobody would catch it later. */
function checkedStatus(status: number): number {
  const whole = Math.trunc(Number(status))
  if (whole >= 100 && whole <= 999) return whole
  throw Object.assign(new RangeError(`Invalid status code: ${status}`), { code: 'ERR_HTTP_INVALID_STATUS_CODE' })
}

function checkChunk(chunk: unknown): void {
  if (typeof chunk === 'string' || chunk instanceof Uint8Array) return
  const message = 'The "chunk" argument must be of type string or an instance of Buffer or Uint8Array.'
  throw Object.assign(new TypeError(message), { code: chunk === null ? 'ERR_STREAM_NULL_VALUES' : 'ERR_INVALID_ARG_TYPE' })
}

/** A write that goes nowhere: its callback hears so, nothing is thrown at a handler that streams on. */
function dropped(args: readonly unknown[]): false {
  const callback = callbackIn(args)
  if (callback !== undefined) {
    process.nextTick(callback, Object.assign(new Error('The response was not delivered'), { code: 'ERR_STREAM_DESTROYED' }))
  }
  return false
}

function callbackIn(args: readonly unknown[]): Callback | undefined {
  const last = args.at(-1)
  return typeof last === 'function' ? (last as Callback) : undefined
}

function exposeToBrowsers(response: ServerResponse): void {
  for (const [name, value] of Object.entries(corsHeaders(response.req.method, (name) => headerText(response.getHeader(name))))) {
    response.setHeader(name, value)
  }
}

function headerText(value: OutgoingHttpHeader | undefined): string | undefined {
  return Array.isArray(value) ? value.join(', ') : value?.toString()
}
