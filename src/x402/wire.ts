import { describe, InputError, quote } from '../codec/index.js'

/**
 * x402 version 2 as JSON, to the field name (docs/x402.md; the reference's "On the wire"). Fields we do not know are
 * kept and echoed, never dropped: extensions of the other side travel through us.
 */

export const X402_VERSION = 2

/** What a payment is for. */
export interface ResourceInfo {
  url: string
  description?: string
  mimeType?: string
}

export type Network = `${string}:${string}`

/** One way to pay. `amount` is in micro-units as text; `payTo` an account. */
export interface PaymentRequirements {
  scheme: string
  network: Network
  asset: string
  amount: string
  payTo: string
  maxTimeoutSeconds: number
  extra: Record<string, unknown>
}

/** What a 402 says, in its body and, in base64, in `PAYMENT-REQUIRED`. */
export interface PaymentRequired {
  x402Version: number
  error?: string
  resource: ResourceInfo
  accepts: PaymentRequirements[]
  extensions?: Record<string, unknown>
}

/** What a client sends in `PAYMENT-SIGNATURE`. */
export interface PaymentPayload {
  x402Version: number
  resource?: ResourceInfo
  accepted: PaymentRequirements
  payload: Record<string, unknown>
  extensions?: Record<string, unknown>
}

/** What a server says of the payment in `PAYMENT-RESPONSE`, and a facilitator on `POST /settle`. */
export interface SettleResponse {
  success: boolean
  /** A sentence; the stable code is in `extensions.sion.code`. */
  errorReason?: string
  payer?: string
  /** Digest of the ledger transaction, empty where there is none. */
  transaction: string
  network: Network
  extensions?: Record<string, unknown>
}

/** What a facilitator says on `POST /verify`. */
export interface VerifyResponse {
  isValid: boolean
  invalidReason?: string
  payer?: string
  extensions?: Record<string, unknown>
}

/** What a facilitator can do: `GET /supported`. */
export interface SupportedResponse {
  kinds: { x402Version: number; scheme: string; network: Network; extra?: Record<string, unknown> }[]
  extensions: string[]
  signers: Record<string, string[]>
}

/** JSON nested deeper than this is nobody's payment. */
const MAX_DEPTH = 16

/** @throws InputError naming the field, for anything that is not a version 2 payment. */
export function parsePaymentPayload(value: unknown, field = 'payment'): PaymentPayload {
  const object = record(value, field)
  checkDepth(object, field)
  if (object['x402Version'] !== X402_VERSION) {
    throw new InputError(`${field}.x402Version`, `expected ${X402_VERSION}, not ${shown(object['x402Version'])}`)
  }
  const resource = object['resource']
  const extensions = object['extensions']
  return {
    ...object,
    x402Version: X402_VERSION,
    accepted: parseRequirements(object['accepted'], `${field}.accepted`),
    payload: record(object['payload'], `${field}.payload`),
    ...(resource === undefined ? {} : { resource: parseResource(resource, `${field}.resource`) }),
    ...(extensions === undefined ? {} : { extensions: record(extensions, `${field}.extensions`) }),
  } as PaymentPayload
}

/** @throws InputError naming the field. */
export function parsePaymentRequired(value: unknown, field = 'PAYMENT-REQUIRED'): PaymentRequired {
  const object = record(value, field)
  checkDepth(object, field)
  if (object['x402Version'] !== X402_VERSION) {
    throw new InputError(`${field}.x402Version`, `expected ${X402_VERSION}, not ${shown(object['x402Version'])}`)
  }
  const accepts = object['accepts']
  if (!Array.isArray(accepts)) throw new InputError(`${field}.accepts`, `expected an array, not ${describe(accepts)}`)
  return {
    ...object,
    x402Version: X402_VERSION,
    resource: parseResource(object['resource'], `${field}.resource`),
    accepts: accepts.map((entry, i) => parseRequirements(entry, `${field}.accepts[${i}]`)),
  } as PaymentRequired
}

/** @throws InputError naming the field. */
export function parseRequirements(value: unknown, field: string): PaymentRequirements {
  const object = record(value, field)
  const seconds = object['maxTimeoutSeconds']
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds < 0) {
    throw new InputError(`${field}.maxTimeoutSeconds`, `expected seconds, not ${shown(seconds)}`)
  }
  const network = filled(object['network'], `${field}.network`)
  if (!isNetwork(network)) throw new InputError(`${field}.network`, `expected a CAIP-2 network, not ${quote(network)}`)
  return {
    ...object,
    scheme: filled(object['scheme'], `${field}.scheme`),
    network,
    asset: filled(object['asset'], `${field}.asset`),
    amount: filled(object['amount'], `${field}.amount`),
    payTo: filled(object['payTo'], `${field}.payTo`),
    maxTimeoutSeconds: seconds,
    extra: object['extra'] === undefined || object['extra'] === null ? {} : record(object['extra'], `${field}.extra`),
  }
}

/** @throws InputError naming the field. */
export function parseSettleResponse(value: unknown, field = 'PAYMENT-RESPONSE'): SettleResponse {
  const object = record(value, field)
  checkDepth(object, field)
  if (typeof object['success'] !== 'boolean') {
    throw new InputError(`${field}.success`, `expected true or false, not ${shown(object['success'])}`)
  }
  if (typeof object['transaction'] !== 'string') {
    throw new InputError(`${field}.transaction`, `expected text, not ${describe(object['transaction'])}`)
  }
  const network = filled(object['network'], `${field}.network`)
  if (!isNetwork(network)) throw new InputError(`${field}.network`, `expected a CAIP-2 network, not ${quote(network)}`)
  for (const name of ['errorReason', 'payer']) {
    const text = object[name]
    // Others say `null` where they have nothing to say.
    if (text === null) delete object[name]
    else if (text !== undefined && typeof text !== 'string') throw new InputError(`${field}.${name}`, `expected text, not ${describe(text)}`)
  }
  return object as unknown as SettleResponse
}

/** A JSON object, and no array or null. */
export function record(value: unknown, field: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError(field, `expected an object, not ${describe(value)}`)
  }
  return value as Record<string, unknown>
}

function parseResource(value: unknown, field: string): ResourceInfo {
  const object = record(value, field)
  for (const name of ['description', 'mimeType']) {
    const text = object[name]
    if (text !== undefined && text !== null && typeof text !== 'string') {
      throw new InputError(`${field}.${name}`, `expected text, not ${describe(text)}`)
    }
  }
  return { ...object, url: filled(object['url'], `${field}.url`) }
}

function filled(value: unknown, field: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw new InputError(field, value === '' ? 'empty' : `expected text, not ${describe(value)}`)
}

function isNetwork(text: string): text is Network {
  return /^[a-zA-Z0-9-]+:[a-zA-Z0-9_-]+$/.test(text)
}

function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  return typeof value === 'string' ? quote(value) : describe(value)
}

function checkDepth(value: unknown, field: string, depth = 0): void {
  if (depth > MAX_DEPTH) throw new InputError(field, `nested deeper than ${MAX_DEPTH}`)
  if (typeof value !== 'object' || value === null) return
  for (const inner of Object.values(value)) checkDepth(inner, field, depth + 1)
}
