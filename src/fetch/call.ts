import { toHex } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'

/**
 * One call, kept so that it can be sent more than once: whatever form its body came in (text, JSON, FormData, a stream,
 * a `Request`), it is read once and sent again byte for byte, with the content type it got the first time.
 */
export interface Call {
  readonly url: string
  readonly method: string
  /** Names the call: the same method, URL and body have the same key. */
  readonly key: string
  readonly redirect: RequestRedirect
  /** A fresh request, each time. */
  request(more?: { headers?: Record<string, string>; redirect?: RequestRedirect; url?: string }): Request
}

export async function readCall(input: RequestInfo | URL, init: RequestInit = {}): Promise<Call> {
  // fetch asks for `duplex` when a body is a stream; no caller should have to know.
  const given = new Request(input, { ...init, ...(init.body instanceof ReadableStream ? { duplex: 'half' } : {}) })
  const body = given.body === null ? undefined : new Uint8Array(await given.arrayBuffer())
  const { method, redirect, signal } = given
  const key = toHex(
    taggedHash('sion/fetch-call/v1', new TextEncoder().encode(`${method} ${given.url}\n`), body ?? new Uint8Array()),
  )
  return {
    url: given.url,
    method,
    key,
    redirect,
    request(more = {}) {
      const headers = new Headers(given.headers)
      for (const [name, value] of Object.entries(more.headers ?? {})) headers.set(name, value)
      return new Request(more.url ?? given.url, {
        method,
        headers,
        signal,
        credentials: given.credentials,
        redirect: more.redirect ?? redirect,
        ...(body === undefined ? {} : { body }),
      })
    },
  }
}
