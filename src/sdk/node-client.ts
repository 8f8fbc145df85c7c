import { describe, formatUsd, InputError, isId, messageOf, parseId, parseUsd, quote, SionError, toBase64, type Id, type MicroUsd } from '../codec/index.js'
import { LightClientError, type EventJson, type NodeAnswer, type NodeTransport, type RequestOptions, type StatusJson } from '../light/index.js'
import { isRecord, readStatus } from './status.js'

/** What a node says of an account, unproven: good enough to build a transaction that the ledger will check. */
export interface AccountClaim {
  readonly account: Id
  readonly balance: MicroUsd
  readonly dual: boolean
  readonly keysKnown: boolean
  readonly pulse: number
}

/**
 * What became of handing in a transaction. `unknown`: the bytes may have arrived, and the node may execute them; only the
 * receipt tells.
 */
export type Submission =
  | { readonly kind: 'submitted'; readonly digest: Id; readonly pulse: number }
  | { readonly kind: 'refused'; readonly code: string; readonly reason: string }
  | { readonly kind: 'unknown'; readonly reason: string; readonly cause: unknown }

/**
 * The part of the node's API that proves nothing: handing in, and what the node says of itself. For what must be true,
 * ask a light client. Every method throws a LightClientError where the node is away or does not speak the API, an
 * InputError for what it cannot read, and a SionError with the node's own code where it cannot do what was asked
 * (`chain_halted`, `too_busy`): then nothing was taken.
 */
export interface NodeClient {
  status(options?: RequestOptions): Promise<StatusJson>
  account(id: Id, options?: RequestOptions): Promise<AccountClaim>
  /** @param transaction canonical bytes. It throws only where the node certainly did not take them. */
  submit(transaction: Uint8Array, options?: RequestOptions): Promise<Submission>
  /** Has the devnet's faucet pay `amount` micro-USD to `account`: the digest is that of its transfer. */
  faucet(account: Id, amount: MicroUsd, options?: RequestOptions): Promise<Submission>
  /** Oldest first, from Pulse `from` on. */
  events(query?: { from?: number; limit?: number }, options?: RequestOptions): Promise<EventJson[]>
}

export function createNodeClient(transport: NodeTransport): NodeClient {
  return {
    async status(options) {
      return readStatus(okBody(await transport.get('/v1/status', options)))
    },

    async account(id, options) {
      const body = fields(okBody(await transport.get(`/v1/accounts/${parseId(id, 'account')}`, options)), 'account')
      if (body['account'] !== id) throw malformed('account', 'is not the one that was asked for')
      return {
        account: id,
        balance: usd(body, 'balance'),
        dual: flag(body, 'dual'),
        keysKnown: flag(body, 'keys_known'),
        pulse: count(body, 'pulse'),
      }
    },

    async submit(transaction, options) {
      return handIn(transport, '/v1/transactions', { transaction: toBase64(transaction) }, options)
    },

    async faucet(account, amount, options) {
      return handIn(transport, '/v1/faucet', { account: parseId(account, 'account'), amount: formatUsd(amount) }, options)
    },

    async events({ from, limit } = {}, options) {
      const query = new URLSearchParams()
      if (from !== undefined) query.set('from', String(from))
      if (limit !== undefined) query.set('limit', String(limit))
      const search = query.size === 0 ? '' : `?${query}`
      const body = okBody(await transport.get(`/v1/events${search}`, options))
      if (!Array.isArray(body)) throw malformed('events', `is ${describe(body)}, not a list`)
      return body.map(readEvent)
    },
  }
}

async function handIn(transport: NodeTransport, path: string, body: object, options?: RequestOptions): Promise<Submission> {
  let answer: NodeAnswer
  try {
    answer = await transport.post(path, body, options)
  } catch (cause) {
    if (neverConnected(cause)) throw cause
    return { kind: 'unknown', reason: messageOf(cause), cause }
  }
  if (answer.status >= 200 && answer.status < 300) {
    try {
      return { kind: 'submitted', ...submitted(answer.body) }
    } catch (cause) {
      return { kind: 'unknown', reason: messageOf(cause), cause }
    }
  }
  const error = errorOf(answer)
  if (answer.status === 422) return { kind: 'refused', code: error.code, reason: error.message }
  // 503 in the node's own words: it took nothing. Any other 5xx comes from something that failed in the middle, the node
  // or a proxy, and the bytes may have gone in.
  const tookNothing = answer.status < 500 || (answer.status === 503 && isOwn(answer))
  if (!tookNothing) return { kind: 'unknown', reason: error.message, cause: error }
  throw error
}

/** What every connection that was never made ends with: nothing was sent on it. */
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'])

function neverConnected(error: unknown): boolean {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if ('code' in at && typeof at.code === 'string' && NEVER_CONNECTED.has(at.code)) return true
  }
  return false
}

function okBody(answer: NodeAnswer): unknown {
  if (answer.status >= 200 && answer.status < 300) return answer.body
  throw errorOf(answer)
}

/** The node's own words, where they are in the API's form; else what its status says. */
function errorOf(answer: NodeAnswer): SionError {
  const { status } = answer
  if (!isOwn(answer)) {
    const code = status >= 500 || status === 429 ? 'node_unavailable' : 'node_refused'
    return new LightClientError(code, `the node answered ${status}`)
  }
  const { code: said, message, field } = answer.body.error
  // A code becomes an errorReason or a label elsewhere: only what can be one.
  const code = /^[a-z][a-z0-9_]{0,63}$/.test(said) ? said : 'node_refused'
  const words = message.slice(0, 500)
  if (status !== 400 || typeof field !== 'string') return new SionError(code, words)
  return new InputError(field, words.startsWith(`${field}: `) ? words.slice(field.length + 2) : words, { code })
}

function isOwn(answer: NodeAnswer): answer is NodeAnswer & { body: { error: { code: string; message: string; field?: unknown } } } {
  const error = isRecord(answer.body) ? answer.body['error'] : undefined
  return isRecord(error) && typeof error['code'] === 'string' && typeof error['message'] === 'string'
}

function submitted(body: unknown): { digest: Id; pulse: number } {
  const at = fields(body, 'answer')
  const { digest } = at
  if (!isId(digest)) throw malformed('digest', 'is no digest')
  return { digest, pulse: count(at, 'pulse') }
}

function readEvent(value: unknown): EventJson {
  const at = fields(value, 'event')
  const { event, tx } = at
  if (!isRecord(event)) throw malformed('event', `is ${describe(event)}`)
  if (tx !== null && !isId(tx)) throw malformed('tx', 'is no digest')
  return { event, pulse: count(at, 'pulse'), tx }
}

function fields(value: unknown, field: string): Record<string, unknown> {
  if (!isRecord(value)) throw malformed(field, `is ${describe(value)}, not an object`)
  return value
}

function flag(from: Record<string, unknown>, field: string): boolean {
  const value = from[field]
  if (typeof value !== 'boolean') throw malformed(field, `is ${describe(value)}`)
  return value
}

function count(from: Record<string, unknown>, field: string): number {
  const value = from[field]
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) throw malformed(field, 'is no count')
  return value
}

function usd(from: Record<string, unknown>, field: string): MicroUsd {
  try {
    return parseUsd(from[field], field)
  } catch (cause) {
    throw malformed(field, `is ${typeof from[field] === 'string' ? quote(String(from[field])) : describe(from[field])}, not USD`, cause)
  }
}

function malformed(field: string, problem: string, cause?: unknown): LightClientError {
  return new LightClientError('node_malformed', `the node's answer: ${field} ${problem}`, cause === undefined ? {} : { cause })
}
