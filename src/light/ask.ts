import { InputError, quote } from '../codec/index.js'
import { readError } from './answers.js'
import { LightClientError, type LightClientCode } from './errors.js'
import type { NodeTransport, RequestOptions } from './transport.js'

/**
 * One question to the node, its 200 taken apart by `read`.
 * @throws LightClientError `node_unreachable`, `node_unavailable`, `node_refused`, `node_malformed`.
 */
export async function ask<T>(
  transport: NodeTransport,
  path: string,
  read: (json: unknown) => T,
  options?: RequestOptions,
): Promise<T> {
  const { status, body } = await transport.get(path, options)
  if (status === 200) return readAnswer(path, body, read)
  throw notAnswered(path, status, body)
}

/**
 * The same, but where the node says 404 with one of the API's own codes `unknown`, that code. Any other 404 is that of
 * whatever else is at the address.
 */
export async function askOrUnknown<T, C extends LightClientCode>(
  transport: NodeTransport,
  path: string,
  unknown: readonly C[],
  read: (json: unknown) => T,
  options?: RequestOptions,
): Promise<{ found: T } | { unknown: C }> {
  const { status, body } = await transport.get(path, options)
  if (status === 200) return { found: readAnswer(path, body, read) }
  const code = status === 404 ? readError(body)?.code : undefined
  const known = unknown.find((one) => one === code)
  if (known !== undefined) return { unknown: known }
  throw notAnswered(path, status, body)
}

function notAnswered(path: string, status: number, body: unknown): LightClientError {
  const error = readError(body)
  const said = error === undefined ? '' : `: ${quote(error.code)} ${quote(error.message, 200)}`
  const code = status >= 500 || status === 429 ? 'node_unavailable' : 'node_refused'
  return new LightClientError(code, `the node answered ${status} to ${path}${said}`)
}

function readAnswer<T>(path: string, body: unknown, read: (json: unknown) => T): T {
  try {
    return read(body)
  } catch (cause) {
    if (!(cause instanceof InputError)) throw cause
    throw new LightClientError('node_malformed', `the node’s answer to ${path}: ${cause.message}`, { cause })
  }
}

/** `work`, or the reason of `signal` if that comes first. The work goes on: others may wait for it too. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
