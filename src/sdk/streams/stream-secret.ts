import { fromHex, InputError, parseId, parseMicroUsd, shortId, SionError, toHex, type Id, type MicroUsd } from '../../codec/index.js'
import { MAX_POSITION } from '../../crypto/chain-step.js'
import type { ChainSecret } from './payer-chain.js'

/** All that a payer keeps of a stream beside its position. Whoever has it can spend the whole stream. */
export interface StreamSecret extends ChainSecret {
  readonly stream: Id
  /** The transaction that opens it, and the last Pulse in which that could execute. */
  readonly digest: Id
  readonly validUntil: number
  /** The chain identity of the ledger. */
  readonly chain: Id
  readonly payer: Id
  /** The payer's wallet, where it has a name. */
  readonly wallet?: string
  readonly payee: Id
  /** Micro-USD a step. */
  readonly stepValue: MicroUsd
  /** Micro-USD as opened. */
  readonly escrow: MicroUsd
  /** As opened. */
  readonly lastPulse: number
}

/** What can change about a stream, as the ledger had it last. */
export interface LatestTerms {
  readonly escrow: MicroUsd
  readonly lastPulse: number
}

const FORMAT = 1

export function formatSecret(secret: StreamSecret): string {
  const { stream, digest, validUntil, chain, payer, wallet, payee, seed, salt, length, stepValue, escrow, lastPulse } = secret
  const fields = {
    format: FORMAT,
    stream,
    digest,
    validUntil,
    chain,
    payer,
    ...(wallet === undefined ? {} : { wallet }),
    payee,
    seed: toHex(seed),
    salt: toHex(salt),
    length,
    stepValue: stepValue.toString(),
    escrow: escrow.toString(),
    lastPulse,
  }
  return `${JSON.stringify(fields, null, 2)}\n`
}

/**
 * @param path named in errors; no error shows what the file holds.
 * @throws SionError `stream_newer`, `stream_malformed`.
 */
export function parseSecret(text: string, stream: Id, path: string): StreamSecret {
  const json = parseObject(text)
  const format = json?.['format']
  if (typeof format === 'number' && format > FORMAT) {
    throw new SionError('stream_newer', `stream ${shortId(stream)}: ${path} has format ${format}, this version knows format ${FORMAT}: use the version of sion that wrote it`)
  }
  if (json === undefined || format !== FORMAT) throw malformed(stream, path, 'it is no stream of format 1')
  try {
    const secret = readSecret(json)
    if (secret.stream !== stream) throw new InputError('stream', 'is another one')
    return secret
  } catch (error) {
    // An InputError may quote what it found: here that may be the secret.
    throw malformed(stream, path, error instanceof InputError ? `its field ${error.field} is not of the right form` : 'a field is missing')
  }
}

export function formatTerms({ escrow, lastPulse }: LatestTerms): string {
  return `${JSON.stringify({ format: FORMAT, escrow: escrow.toString(), lastPulse })}\n`
}

/** Undefined for whatever is not them: they can be asked for again. */
export function parseTerms(text: string): LatestTerms | undefined {
  const json = parseObject(text)
  if (json?.['format'] !== FORMAT) return undefined
  try {
    return { escrow: parseMicroUsd(json['escrow'], 'escrow'), lastPulse: whole(json, 'lastPulse', Number.MAX_SAFE_INTEGER) }
  } catch {
    return undefined
  }
}

function readSecret(json: Record<string, unknown>): StreamSecret {
  const { wallet } = json
  if (wallet !== undefined && typeof wallet !== 'string') throw new InputError('wallet', 'expected text')
  const id = (field: string): Id => parseId(json[field], field)
  return {
    stream: id('stream'),
    digest: id('digest'),
    validUntil: whole(json, 'validUntil', Number.MAX_SAFE_INTEGER),
    chain: id('chain'),
    payer: id('payer'),
    ...(wallet === undefined ? {} : { wallet }),
    payee: id('payee'),
    seed: fromHex(json['seed'], 'seed', 32),
    salt: fromHex(json['salt'], 'salt', 16),
    length: whole(json, 'length', MAX_POSITION),
    stepValue: parseMicroUsd(json['stepValue'], 'stepValue'),
    escrow: parseMicroUsd(json['escrow'], 'escrow'),
    lastPulse: whole(json, 'lastPulse', Number.MAX_SAFE_INTEGER),
  }
}

function whole(json: Record<string, unknown>, field: string, most: number): number {
  const value = json[field]
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= most) return value
  throw new InputError(field, 'expected a whole number')
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(text)
    return typeof json === 'object' && json !== null && !Array.isArray(json) ? { ...json } : undefined
  } catch {
    return undefined
  }
}

function malformed(stream: Id, path: string, problem: string): SionError {
  return new SionError('stream_malformed', `stream ${shortId(stream)}: ${path} cannot be used: ${problem}`)
}

