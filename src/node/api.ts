import { Hono, type Context } from 'hono'
import { methodNotAllowed } from 'hono/method-not-allowed'
import { fromBase64, InputError, messageOf, parseId, parseUsd, toBase64, type Id } from '../codec/index.js'
import type { GenesisJson, SubmittedJson } from '../light/node-api.js'
import { encodeGenesis, type Genesis } from '../pulse/index.js'
import type { Admission, Taken } from './admission.js'
import { apiError, inputError, refusalError, unavailable, type ApiError } from './api-error.js'
import { parseBody, parseCertificate, parseQuery, parseWait, parseWhole, readBody } from './api-input.js'
import type { Chain } from './chain.js'
import type { Committee } from './committee.js'
import type { Faucet } from './faucet.js'
import type { Gate } from './gate.js'
import type { Logger } from './logger.js'
import type { Mempool } from './mempool.js'
import type { Reader } from './reader.js'
import type { Refusal } from './refusal.js'
import type { Waiters } from './waiters.js'

const MAX_EVENTS = 1_000
/** A path of a log of a million claims is 1.3 kB. */
const MAX_CLAIMS_SHOWN = 500

export interface ApiParts {
  readonly chain: Chain
  readonly genesis: Genesis
  readonly reader: Reader
  readonly admission: Admission
  readonly faucet: Faucet
  readonly mempool: Mempool
  readonly committee: Committee
  readonly waiters: Waiters
  readonly gate: Gate
  readonly logger: Logger
  /** A validator was started or stopped. */
  readonly setRunning: (validator: number, running: boolean) => void
}

/** The node's HTTP API: reads what came, asks, and writes the answer (`light/node-api.ts`). */
export function createApi({ chain, genesis, reader, admission, faucet, mempool, committee, waiters, gate, logger, setRunning }: ApiParts): Hono {
  const app = new Hono()

  app.use(async (_, next) => {
    await gate.open()
    await next()
  })
  app.use(methodNotAllowed({ app, onMethodNotAllowed: wrongMethod }))
  app.use('/v1/*', async (c, next) => {
    // A page in a browser on this machine reaches us too. It sends its origin with whatever can change something.
    if (c.req.method === 'POST' && c.req.header('origin') !== undefined) {
      return errorResponse(apiError(403, 'cross_origin', 'this API is not for web pages'))
    }
    return next()
  })

  app.get('/v1/status', (c) => {
    parseQuery(c.req.url, [])
    return Response.json(reader.status())
  })

  const genesisJson: GenesisJson = { chain: chain.id, genesis: toBase64(encodeGenesis(genesis)) }
  app.get('/v1/genesis', (c) => {
    parseQuery(c.req.url, [])
    return Response.json(genesisJson)
  })

  app.get('/v1/accounts/:id', (c) => {
    parseQuery(c.req.url, [])
    const id = parseId(c.req.param('id'), 'account')
    const account = reader.account(id)
    return account === undefined ? notFound('unknown_account', `${id.slice(0, 8)} is not an account`) : Response.json(account)
  })

  app.get('/v1/objects/:id', (c) => {
    const query = parseQuery(c.req.url, ['certificate'])
    const object = reader.object(parseId(c.req.param('id'), 'object'), parseCertificate(query.certificate))
    if (object !== undefined) return Response.json(object)
    return errorResponse(unavailable('no_certified_pulse', 'the chain has no certified Pulse yet'))
  })

  app.get('/v1/pulses/:number', (c) => {
    const query = parseQuery(c.req.url, ['certificate'])
    const text = c.req.param('number')
    const number = text === 'latest' ? reader.status().certified_pulse : parseWhole(text, 'pulse', 0, Number.MAX_SAFE_INTEGER)
    const wanted = parseCertificate(query.certificate)
    const pulse = reader.pulse(number, wanted)
    if (pulse === undefined) return notFound('unknown_pulse', `there is no certified Pulse ${number}`)
    if (wanted && pulse.certificate === '') {
      return notFound('certificate_dropped', `Pulse ${number} was empty and long ago: its certificate was dropped`)
    }
    return Response.json(pulse)
  })

  app.post('/v1/transactions', async (c) => {
    const body = parseBody(await readBody(c.req.raw), ['transaction'])
    return submitted(await admission.submit(fromBase64(body.get('transaction'), 'transaction')))
  })

  app.get('/v1/transactions/:digest', (c) => {
    parseQuery(c.req.url, [])
    const digest = parseId(c.req.param('digest'), 'digest')
    const transaction = reader.transaction(digest)
    return transaction === undefined ? unknownTransaction(digest) : Response.json(transaction)
  })

  app.get('/v1/receipts/:digest', async (c) => {
    const query = parseQuery(c.req.url, ['wait', 'certificate'])
    const digest = parseId(c.req.param('digest'), 'digest')
    const wait = parseWait(query.wait)
    const wanted = parseCertificate(query.certificate)
    const look = () => reader.receipt(digest, wanted)
    const inVain = mempool.whyDropped(digest) !== undefined
    const receipt = look() ?? (await afterWait(c, digest, inVain ? 0 : wait, look))
    return receipt === undefined ? unknownTransaction(digest, mempool.whyDropped(digest)) : Response.json(receipt)
  })

  app.get('/v1/knowledge', (c) => {
    const query = parseQuery(c.req.url, ['from', 'limit', 'known', 'certificate'])
    const from = parseWhole(query.from ?? '0', 'from', 0, Number.MAX_SAFE_INTEGER)
    const limit = parseWhole(query.limit ?? '100', 'limit', 0, MAX_CLAIMS_SHOWN)
    const known = parseWhole(query.known ?? '0', 'known', 0, Number.MAX_SAFE_INTEGER)
    const knowledge = reader.knowledge(from, limit, known, parseCertificate(query.certificate))
    if (knowledge !== undefined) return Response.json(knowledge)
    return errorResponse(unavailable('no_certified_pulse', 'the chain has no certified Pulse yet'))
  })

  app.get('/v1/events', async (c) => {
    const query = parseQuery(c.req.url, ['from', 'limit', 'wait'])
    const from = parseWhole(query.from ?? '0', 'from', 0, Number.MAX_SAFE_INTEGER - 1)
    const limit = parseWhole(query.limit ?? '100', 'limit', 1, MAX_EVENTS)
    const deadline = performance.now() + parseWait(query.wait)
    let events = reader.events(from, limit)
    // Woken by any event, which may be one before `from`.
    while (events.length === 0 && performance.now() < deadline && !c.req.raw.signal.aborted) {
      events = (await afterWait(c, 'events', deadline - performance.now(), () => reader.events(from, limit))) ?? []
    }
    return Response.json(events)
  })

  app.post('/v1/faucet', async (c) => {
    const body = parseBody(await readBody(c.req.raw), ['account', 'amount'])
    const account = parseId(body.get('account'), 'account')
    return submitted(await faucet.pay(account, parseUsd(body.get('amount'), 'amount')))
  })

  app.post('/v1/devnet/validators/:index', async (c) => {
    const index = parseWhole(c.req.param('index'), 'validator', 0, committee.validators.length - 1)
    const running = parseBody(await readBody(c.req.raw), ['running']).get('running')
    if (typeof running !== 'boolean') throw new InputError('running', 'expected true or false')
    setRunning(index, running)
    return Response.json({ validator: index, running, active: committee.active })
  })

  app.notFound((c) => notFound('unknown_path', `there is nothing at ${JSON.stringify(c.req.path.slice(0, 100))}`))
  app.onError((error, c) => {
    if (error instanceof InputError) return errorResponse(inputError(error))
    // Nobody reads the answer; at a stop this is how every open request ends.
    if (!c.req.raw.signal.aborted) logger.error(`a request failed: ${messageOf(error)}`)
    return errorResponse(apiError(500, 'internal_error', 'the node failed on this request; its log says why'))
  })
  return app

  /** What `look` sees after waiting, if it was worth it. */
  async function afterWait<T>(c: Context, key: Id | 'events', ms: number, look: () => T): Promise<T | undefined> {
    if (ms <= 0) return undefined
    return (await waiters.wait(key, ms, c.req.raw.signal)) ? look() : undefined
  }
}

function submitted(result: Taken | Refusal): Response {
  if (result.kind === 'refused') return errorResponse(refusalError(result))
  const { digest, pulse } = result
  const json: SubmittedJson = { digest, pulse }
  return Response.json(json, { status: 202 })
}

function errorResponse({ status, body, headers = {} }: ApiError): Response {
  return Response.json(body, { status, headers })
}

function notFound(code: string, message: string): Response {
  return errorResponse(apiError(404, code, message))
}

function unknownTransaction(digest: Id, dropped?: string): Response {
  const reason = dropped === undefined ? '' : `; it was dropped: ${dropped}`
  return notFound('unknown_transaction', `no executed transaction ${digest.slice(0, 8)}${reason}`)
}

function wrongMethod(c: Context, allowed: string[]): Response {
  const error = apiError(405, 'wrong_method', `${c.req.method} is not for this path, which takes ${allowed.join(' and ')}`)
  return errorResponse({ ...error, headers: { Allow: allowed.join(', ') } })
}
