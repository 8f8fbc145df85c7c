import { describe, InputError, messageOf, quote, SionError } from '../codec/index.js'
import type { Facilitator } from '../x402/facilitator.js'
import {
  parseSettleResponse,
  record,
  X402_VERSION,
  type PaymentPayload,
  type PaymentRequirements,
  type SupportedResponse,
  type VerifyResponse,
} from '../x402/wire.js'

export interface RemoteFacilitatorOptions {
  /** Where it listens, such as `http://127.0.0.1:8405`. */
  readonly url: string
  /** Sent as `Authorization: Bearer`. */
  readonly apiKey?: string | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
  /** For one answer; a settlement waits for the ledger. Default 45,000. */
  readonly timeoutMs?: number | undefined
}

/** Names the asker of a settlement, in secret: asked again with the same, it is answered the same. */
export const ASKER_HEADER = 'Idempotency-Key'

const MAX_ANSWER_BYTES = 256 * 1024

/**
 * A facilitator behind x402's HTTP interface, ours or another that settles on sion.
 * @throws InputError `facilitator` for an address that is none.
 */
export function remoteFacilitator(options: RemoteFacilitatorOptions): Facilitator {
  const { url, apiKey, fetch = globalThis.fetch, timeoutMs = 45_000 } = options
  const base = baseOf(url)

  async function ask(path: string, body?: object, headers: Record<string, string> = {}): Promise<unknown> {
    let text: string
    let status: number
    try {
      const response = await fetch(`${base}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        redirect: 'error',
        headers: {
          accept: 'application/json',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeoutMs),
      })
      text = await readText(response)
      ;({ status } = response)
    } catch (cause) {
      throw away(`no answer to ${path} (${messageOf(cause)})`, cause)
    }
    if (status !== 200) throw away(`${status} to ${path}${status === 401 || status === 403 ? ': is the API key right?' : ''}`)
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw away(`no JSON to ${path}`, cause)
    }
  }

  function away(what: string, cause?: unknown): SionError {
    return new SionError('facilitator_unavailable', `the facilitator ${base} gave ${what}`, { cause })
  }

  async function read<T>(answer: unknown, parse: (value: unknown) => T): Promise<T> {
    try {
      return parse(answer)
    } catch (cause) {
      throw away(`an answer that x402 does not know: ${messageOf(cause)}`, cause)
    }
  }

  const request = (paymentPayload: PaymentPayload, paymentRequirements: PaymentRequirements): object => ({
    x402Version: X402_VERSION,
    paymentPayload,
    paymentRequirements,
  })

  return {
    async verify(payment, requirements) {
      return read(await ask('/verify', request(payment, requirements)), parseVerifyResponse)
    },
    async settle(payment, requirements, asker) {
      const headers = asker === undefined ? {} : { [ASKER_HEADER]: asker }
      const answer = await ask('/settle', request(payment, requirements), headers)
      return read(answer, (value) => parseSettleResponse(value, 'settlement'))
    },
    async release(payment, requirements) {
      await ask('/release', request(payment, requirements))
    },
    async supported() {
      return read(await ask('/supported'), parseSupported)
    },
  }
}

/** Reads no more than an answer may have: a facilitator that never ends must not fill a seller's memory. */
async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  if (reader === undefined) return ''
  const decoder = new TextDecoder()
  let text = ''
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    length += value.length
    if (length > MAX_ANSWER_BYTES) {
      await reader.cancel()
      throw new RangeError(`more than ${MAX_ANSWER_BYTES} bytes`)
    }
    text += decoder.decode(value, { stream: true })
  }
}

function baseOf(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch (cause) {
    throw new InputError('facilitator', `expected an address such as http://127.0.0.1:8405, not ${quote(text)}`, { cause })
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InputError('facilitator', `expected an http or https address, not ${quote(text)}`)
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

function parseVerifyResponse(value: unknown): VerifyResponse {
  const object = record(value, 'verification')
  if (typeof object['isValid'] !== 'boolean') throw new InputError('verification.isValid', 'expected true or false')
  for (const name of ['invalidReason', 'payer']) {
    const text = object[name]
    // Others say `null` where they have nothing to say.
    if (text === null) delete object[name]
    else if (text !== undefined && typeof text !== 'string') throw new InputError(`verification.${name}`, `expected text, not ${describe(text)}`)
  }
  return object as unknown as VerifyResponse
}

function parseSupported(value: unknown): SupportedResponse {
  const object = record(value, 'supported')
  if (!Array.isArray(object['kinds'])) throw new InputError('supported.kinds', 'expected an array')
  for (const [i, kind] of object['kinds'].entries()) record(kind, `supported.kinds[${i}]`)
  return object as unknown as SupportedResponse
}
