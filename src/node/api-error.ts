import { InputError } from '../codec/index.js'
import type { ErrorJson } from '../light/node-api.js'
import type { Refusal, RefusalCode } from './refusal.js'

/** An answer that is not 2xx. */
export interface ApiError {
  readonly status: number
  readonly body: ErrorJson
  readonly headers?: Record<string, string>
}

/** Refusals that come of the moment, not of the transaction. */
const UNAVAILABLE: ReadonlySet<RefusalCode> = new Set(['chain_halted', 'too_busy'])

export function refusalError({ code, reason }: Refusal): ApiError {
  return UNAVAILABLE.has(code) ? unavailable(code, reason) : apiError(422, code, reason)
}

export function inputError(error: InputError): ApiError {
  const { code, message, field } = error
  return { status: code === 'body_too_large' ? 413 : 400, body: { error: { code, message, field } } }
}

export function apiError(status: number, code: string, message: string): ApiError {
  return { status, body: { error: { code, message } } }
}

/** 503, with the second after which to ask again. */
export function unavailable(code: string, message: string): ApiError {
  return { ...apiError(503, code, message), headers: { 'Retry-After': '1' } }
}
