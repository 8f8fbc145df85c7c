import { toHex } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'

/**
 * One call, kept so that it can be sent more than once: whatever form its body came in (text, JSON, FormData, a stream,
 * a `Request`), it is read once and sent again byte for byte, with the content type it got the first time.
 */
export interface Call {
  readonly url: string
  readonly method: string
  /** Names the call: the same payer, method, URL and body have the same key. */
  readonly key: string
  readonly redirect: RequestRedirect
  readonly signal: AbortSignal
  /** A fresh request, each time. */
  request(more?: CallChange): Request
}

export interface CallChange {
  readonly url?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly redirect?: RequestRedirect
  /** Another method goes without the body. */
  readonly method?: string
}

/** What a request to another origin must not carry along (Fetch standard, "HTTP-redirect fetch"). */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization', 'host']
const ABOUT_BODY = ['content-type', 'content-length', 'content-encoding', 'content-language', 'content-location']

/** @param payer what else makes calls differ: who pays, and where. */
export async function readCall(payer: string, input: RequestInfo | URL, init: RequestInit = {}): Promise<Call> {
  // fetch asks for `duplex` when a body is a stream; no caller should have to know.
  const given = new Request(input, { ...init, ...(init.body instanceof ReadableStream ? { duplex: 'half' } : {}) })
  const body = given.body === null ? undefined : new Uint8Array(await given.arrayBuffer())
  const { redirect, signal } = given
  const key = toHex(
    taggedHash('sion/fetch-call/v1', new TextEncoder().encode(`${payer}\n${given.method} ${given.url}\n`), body ?? new Uint8Array()),
  )
  return {
    url: given.url,
    method: given.method,
    key,
    redirect,
    signal,
    request(more = {}) {
      const { url = given.url, method = given.method } = more
      const headers = new Headers(given.headers)
      if (new URL(url).origin !== new URL(given.url).origin) for (const name of CREDENTIALS) headers.delete(name)
      const withBody = body !== undefined && method === given.method
      if (!withBody) for (const name of ABOUT_BODY) headers.delete(name)
      for (const [name, value] of Object.entries(more.headers ?? {})) headers.set(name, value)
      return new Request(url, {
        method,
        headers,
        signal,
        credentials: given.credentials,
        redirect: more.redirect ?? redirect,
        ...(withBody ? { body } : {}),
      })
    },
  }
}
