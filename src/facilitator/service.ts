import type { ServerResponse } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import { Hono, type Context } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client'
import { InputError, messageOf, SionError } from '../codec/index.js'
import { equalBytes } from '../crypto/hmac.js'
import { sha256 } from '../crypto/hash.js'
import { isCode, type Refusal } from '../x402/codes.js'
import { parseExactPayload } from '../x402/exact/payment.js'
import type { Facilitator } from '../x402/facilitator.js'
import type { Logger } from '../x402/logger.js'
import type { NonceStore } from '../x402/nonce-store.js'
import {
  parsePaymentPayload,
  parseRequirements,
  record,
  X402_VERSION,
  type PaymentPayload,
  type PaymentRequirements,
  type SettleResponse,
} from '../x402/wire.js'
import { serveHttp } from './http-server.js'
import { ASKER_HEADER } from './remote.js'
import { settleOnce } from './settle-once.js'

export interface FacilitatorServiceOptions {
  readonly facilitator: Facilitator
  /** Remembers who was answered, so that a payment settles once. */
  readonly store: NonceStore
  readonly host: string
  /** 0 for a free one. */
  readonly port: number
  /** Where there are any, `/verify` and `/settle` need one of them as `Authorization: Bearer`. */
  readonly apiKeys: readonly string[]
  readonly logger: Logger
}

export interface FacilitatorService {
  readonly url: string
  /** Takes no new requests, answers those under way, ends. */
  stop(): Promise<void>
}

type Env = { Bindings: HttpBindings }

const MAX_BODY_BYTES = 64 * 1024

/**
 * x402's facilitator interface over HTTP: `POST /verify`, `POST /settle`, `GET /supported`, with `/healthz` and
 * `/metrics`. It has no wallet: what it settles, payers signed.
 */
export async function startFacilitator(options: FacilitatorServiceOptions): Promise<FacilitatorService> {
  const { facilitator, store, host, port, apiKeys, logger } = options
  const metrics = createMetrics()
  const app = new Hono<Env>()
  const keyDigests = apiKeys.map((key) => sha256(new TextEncoder().encode(key)))

  for (const path of ['/verify', '/settle', '/release']) {
    app.use(path, bodyLimit({ maxSize: MAX_BODY_BYTES, onError: (c) => c.json({ error: `a body over ${MAX_BODY_BYTES} bytes` }, 413) }))
    app.use(path, async (c, next) => {
      if (keyDigests.length > 0 && !hasKey(c.req.header('authorization'), keyDigests)) {
        return c.json({ error: 'an API key is needed: Authorization: Bearer KEY' }, 401)
      }
      return next()
    })
  }

  app.post('/verify', async (c) => {
    const { payment, requirements } = await readRequest(c)
    const verified = await facilitator.verify(payment, requirements)
    metrics.verified.inc({ outcome: verified.isValid ? 'valid' : codeOf(verified.extensions) })
    return c.json(verified)
  })

  app.post('/settle', async (c) => {
    const { payment, requirements } = await readRequest(c)
    const asker = c.req.header(ASKER_HEADER)
    const end = metrics.settleSeconds.startTimer()
    if (requirements.scheme === 'stream') {
      // A chain element settles once by itself.
      const response = await facilitator.settle(payment, requirements, asker)
      end()
      metrics.settled.inc({ outcome: response.success ? 'success' : codeOf(response.extensions) })
      return c.json(response)
    }
    const { digest } = parseExactPayload(payment.payload)
    const once = await settleOnce(store, digest, asker, () => facilitator.settle(payment, requirements))
    end()
    if ('kind' in once) {
      metrics.settled.inc({ outcome: once.code })
      return c.json(refusedSettlement(once, requirements))
    }
    const { response } = once
    metrics.settled.inc({ outcome: response.success ? 'success' : codeOf(response.extensions) })
    logger.info(`${digest}: ${response.success ? 'settled' : 'not settled'}, ${requirements.amount} micro-USD to ${requirements.payTo}`)
    reportDelivery(c.env.outgoing, (arrived) => {
      once.delivered(arrived).catch((error: unknown) => logger.error(`${digest}: ${messageOf(error)}`))
    })
    return c.json(response)
  })

  app.post('/release', async (c) => {
    const { payment, requirements } = await readRequest(c)
    await facilitator.release?.(payment, requirements)
    return c.json({ released: true })
  })

  app.get('/supported', async (c) => c.json(await facilitator.supported()))

  app.get('/healthz', async (c) => {
    try {
      await facilitator.supported()
      await store.secret()
      return c.json({ ok: true })
    } catch (error) {
      return c.json({ ok: false, error: messageOf(error) }, 503)
    }
  })

  app.get('/metrics', async (c) => c.text(await metrics.registry.metrics(), 200, { 'content-type': metrics.registry.contentType }))

  app.notFound((c) => c.json({ error: `no ${c.req.method} ${c.req.path} here: POST /verify, POST /settle, GET /supported, /healthz, /metrics` }, 404))

  app.onError((error, c) => {
    if (error instanceof InputError) return c.json({ error: error.message, code: error.code, field: error.field }, 400)
    logger.error(messageOf(error))
    const code = error instanceof SionError && isCode(error.code) ? error.code : 'facilitator_unavailable'
    return c.json({ error: 'the facilitator cannot answer now', code }, 503, { 'Retry-After': '2' })
  })

  return listen(app, host, port, store)
}

async function readRequest(c: Context<Env>): Promise<{ payment: PaymentPayload; requirements: PaymentRequirements }> {
  let json: unknown
  try {
    json = await c.req.json()
  } catch {
    throw new InputError('body', 'not JSON')
  }
  const body = record(json, 'body')
  if (body['x402Version'] !== X402_VERSION) throw new InputError('x402Version', `expected ${X402_VERSION}`)
  return {
    payment: parsePaymentPayload(body['paymentPayload'], 'paymentPayload'),
    requirements: parseRequirements(body['paymentRequirements'], 'paymentRequirements'),
  }
}

function refusedSettlement(refusal: Refusal, { network }: PaymentRequirements): SettleResponse {
  return {
    success: false,
    errorReason: refusal.reason,
    transaction: '',
    network,
    extensions: { sion: { code: refusal.code } },
  }
}

/** Calls back once: whether the answer was handed to the asker's connection, or that connection ended first. */
function reportDelivery(response: ServerResponse | { stream: unknown }, report: (arrived: boolean) => void): void {
  if (!('once' in response)) return report(true)
  // The connection may have ended while the ledger was waited for: then neither event comes any more.
  if (response.destroyed || response.socket?.destroyed !== false) return report(false)
  let reported = false
  const once = (arrived: boolean): void => {
    if (!reported) report(arrived)
    reported = true
  }
  response.once('finish', () => once(true))
  response.once('close', () => once(false))
}

function hasKey(header: string | undefined, digests: readonly Uint8Array[]): boolean {
  const match = /^Bearer (\S+)$/.exec(header ?? '')
  if (match?.[1] === undefined) return false
  const digest = sha256(new TextEncoder().encode(match[1]))
  return digests.some((known) => equalBytes(known, digest))
}

function codeOf(extensions: Record<string, unknown> | undefined): string {
  const sion = extensions?.['sion']
  return typeof sion === 'object' && sion !== null && 'code' in sion && isCode(sion.code) ? sion.code : 'refused'
}

function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const registers = [registry]
  return {
    registry,
    verified: new Counter({ name: 'sion_facilitator_verifications_total', help: 'Payments verified, by outcome', labelNames: ['outcome'], registers }),
    settled: new Counter({ name: 'sion_facilitator_settlements_total', help: 'Settlements asked for, by outcome', labelNames: ['outcome'], registers }),
    settleSeconds: new Histogram({
      name: 'sion_facilitator_settle_seconds',
      help: 'Seconds from being asked to settle to the answer',
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20],
      registers,
    }),
  }
}

async function listen(app: Hono<Env>, host: string, port: number, store: NonceStore): Promise<FacilitatorService> {
  const server = await serveHttp(app.fetch, host, port)
  return {
    url: server.url,
    async stop() {
      await server.stop()
      await store.close()
    },
  }
}
