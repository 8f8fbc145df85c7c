import { InputError, messageOf, quote } from '../codec/index.js'
import { LightClientError } from './errors.js'

export interface RequestOptions {
  /** Gives up with the signal's own reason. */
  signal?: AbortSignal | undefined
  /** For the whole answer, headers and body. A long poll needs its waiting time on top. */
  timeoutMs?: number | undefined
}

/** What the node answered. `body` is whatever JSON there was: nothing about it has been checked. */
export interface NodeAnswer {
  readonly status: number
  readonly body: unknown
}

/**
 * How a node is reached. Any status is an answer; what is none throws a LightClientError `node_unreachable`,
 * `node_unavailable` or `node_malformed`, or the signal's reason.
 */
export interface NodeTransport {
  /** @param path with its leading slash, such as `/v1/status`. */
  get(path: string, options?: RequestOptions): Promise<NodeAnswer>
  post(path: string, body: unknown, options?: RequestOptions): Promise<NodeAnswer>
}

/** A certificate of 256 validators is 6.7 MB in base64: the largest answer the API can have. */
export const MAX_ANSWER_BYTES = 8 * 1024 * 1024

const DEFAULT_TIMEOUT_MS = 10_000

/**
 * A node over HTTP. Follows no redirects, reads at most {@link MAX_ANSWER_BYTES}, and gives up after 10 s unless told
 * otherwise. A connection is not tried twice.
 * @param url the node's address, such as `http://127.0.0.1:8730`; a path before `/v1` is kept.
 * @throws InputError `node` for an address that is not plain HTTP(S).
 */
export function httpTransport(url: string, fetch: typeof globalThis.fetch = globalThis.fetch): NodeTransport {
  const base = baseOf(url)
  return {
    get: (path, options) => exchange(fetch, base + path, { method: 'GET', headers: { accept: 'application/json' } }, options),
    post: (path, body, options) =>
      exchange(
        fetch,
        base + path,
        {
          method: 'POST',
          headers: { accept: 'application/json', 'content-type': 'application/json' },
          body: JSON.stringify(body),
        },
        options,
      ),
  }
}

function baseOf(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch (cause) {
    throw new InputError('node', `expected an address such as http://127.0.0.1:8730, not ${quote(text)}`, { cause })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError('node', `expected an http or https address, not ${quote(text)}`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new InputError('node', 'an address with a user, a password, a query or a fragment is not a node’s')
  }
  return url.origin + url.pathname.replace(/\/+$/, '')
}

async function exchange(
  fetch: typeof globalThis.fetch,
  url: string,
  init: RequestInit,
  { signal, timeoutMs = DEFAULT_TIMEOUT_MS }: RequestOptions = {},
): Promise<NodeAnswer> {
  signal?.throwIfAborted()
  // Node wants whole milliseconds, and what is left of a deadline may be none.
  const timeout = AbortSignal.timeout(Math.max(0, Math.ceil(timeoutMs)))
  const either = signal === undefined ? timeout : AbortSignal.any([signal, timeout])
  let status: number
  let text: string
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal: either })
    // A browser shows a redirect that is not followed as status 0.
    if (response.type === 'opaqueredirect' || (response.status >= 300 && response.status < 400)) {
      await response.body?.cancel()
      throw new LightClientError('node_malformed', `${url} answered with a redirect, which is not followed: give the node’s own address`)
    }
    status = response.status
    text = await readText(response, url)
  } catch (error) {
    if (error instanceof LightClientError) throw error
    signal?.throwIfAborted()
    throw unreachable(url, timeout.aborted ? `no answer within ${timeoutMs} ms` : reasonOf(error), error)
  }
  return { status, body: parse(text, status, url) }
}

async function readText(response: Response, url: string): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let text = ''
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decode(decoder, undefined, url)
    length += value.length
    if (length > MAX_ANSWER_BYTES) {
      await reader.cancel()
      throw new LightClientError('node_malformed', `${url} answered with more than ${MAX_ANSWER_BYTES} bytes`)
    }
    try {
      text += decode(decoder, value, url)
    } catch (error) {
      await reader.cancel()
      throw error
    }
  }
}

function decode(decoder: TextDecoder, bytes: Uint8Array | undefined, url: string): string {
  try {
    return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true })
  } catch (cause) {
    throw new LightClientError('node_malformed', `${url} answered with bytes that are not UTF-8`, { cause })
  }
}

function parse(text: string, status: number, url: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    // The page of a proxy whose node is away.
    if (status >= 500) throw new LightClientError('node_unavailable', `${url} answered ${status} without JSON`, { cause })
    throw new LightClientError('node_malformed', `${url} answered ${status} with ${quote(text)}, which is not JSON`, { cause })
  }
}

function unreachable(url: string, reason: string, cause: unknown): LightClientError {
  return new LightClientError(
    'node_unreachable',
    `cannot reach the node at ${url} (${reason}): is one running there? "sion devnet" starts one`,
    { cause },
  )
}

/** fetch says "fetch failed" and keeps what happened in its causes. */
function reasonOf(error: unknown): string {
  let reason = messageOf(error)
  for (let depth = 0, at: unknown = error; depth < 4 && at instanceof Error; depth++, at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code
    reason = messageOf(at)
  }
  return reason
}
