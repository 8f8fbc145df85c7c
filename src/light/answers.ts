import { describe, fromBase64, InputError, parseId, quote, type Id } from '../codec/index.js'
import { decodePath, decodeStateProof, type StateProof } from '../merkle/index.js'
import type { KnowledgeEntry, ReceiptProof } from './rules/index.js'

/**
 * The node's JSON (./node-api.ts) taken apart. The node is a stranger: every field is looked at, and what is not of the
 * form the API gives it throws an InputError that names it. Fields that the API does not know are passed over.
 */

/** A header that the node says is certified. */
export interface PulseClaim {
  readonly number: number
  readonly header: Uint8Array
  /** Left out where it was not asked for. */
  readonly certificate: Uint8Array | undefined
}

export interface ReceiptClaim {
  readonly receipt: Uint8Array
  readonly proof: ReceiptProof
  readonly pulse: PulseClaim
}

export interface ObjectClaim {
  readonly id: Id
  /** Undefined: the node says that there is no such object. */
  readonly object: Uint8Array | undefined
  readonly proof: StateProof
  readonly pulse: PulseClaim
}

export interface KnowledgeClaim {
  readonly entries: readonly KnowledgeEntry[]
  readonly consistency: readonly Uint8Array[]
  readonly pulse: PulseClaim
}

export interface GenesisClaim {
  readonly chain: Id
  readonly genesis: Uint8Array
}

export function readGenesis(json: unknown): GenesisClaim {
  const { chain, genesis } = fieldsOf(json, 'answer')
  return { chain: parseId(chain, 'chain'), genesis: fromBase64(genesis, 'genesis') }
}

export function readPulse(json: unknown, field = 'answer'): PulseClaim {
  const at = field === 'answer' ? '' : `${field}.`
  const { number, header, certificate } = fieldsOf(json, field)
  return {
    number: count(number, `${at}number`),
    header: fromBase64(header, `${at}header`),
    certificate: certificate === undefined || certificate === '' ? undefined : fromBase64(certificate, `${at}certificate`),
  }
}

export function readReceipt(json: unknown): ReceiptClaim {
  const { receipt, proof, pulse } = fieldsOf(json, 'answer')
  const { index, size, path } = fieldsOf(proof, 'proof')
  return {
    receipt: fromBase64(receipt, 'receipt'),
    proof: { index: count(index, 'proof.index'), size: count(size, 'proof.size'), path: decodePath(path, 'proof.path') },
    pulse: readPulse(pulse, 'pulse'),
  }
}

export function readObject(json: unknown): ObjectClaim {
  const { id, object, proof, pulse } = fieldsOf(json, 'answer')
  return {
    id: parseId(id, 'id'),
    object: object === null ? undefined : fromBase64(object, 'object'),
    proof: decodeStateProof(proof, 'proof'),
    pulse: readPulse(pulse, 'pulse'),
  }
}

export function readKnowledge(json: unknown): KnowledgeClaim {
  const { entries, consistency, pulse } = fieldsOf(json, 'answer')
  if (!Array.isArray(entries)) throw new InputError('entries', `expected an array, not ${describe(entries)}`)
  return {
    entries: entries.map((entry: unknown, at): KnowledgeEntry => {
      const { claim, index, path } = fieldsOf(entry, `entries[${at}]`)
      const field = `entries[${at}]`
      return { claim: parseId(claim, `${field}.claim`), index: count(index, `${field}.index`), path: decodePath(path, `${field}.path`) }
    }),
    consistency: decodePath(consistency, 'consistency'),
    pulse: readPulse(pulse, 'pulse'),
  }
}

export function readBody(json: unknown): Uint8Array {
  return fromBase64(fieldsOf(json, 'answer')['body'], 'body')
}

/** An error answer, as far as it is one. Its texts are the node's: quote them before you show them. */
export function readError(json: unknown): { code: string; message: string } | undefined {
  if (!isRecord(json) || !isRecord(json['error'])) return undefined
  const { code, message } = json['error']
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message }
}

function fieldsOf(value: unknown, field: string): Record<string, unknown> {
  if (!isRecord(value)) throw new InputError(field, `expected an object, not ${describe(value)}`)
  return value
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function count(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  const got = typeof value === 'number' ? `${value}` : typeof value === 'string' ? quote(value) : describe(value)
  throw new InputError(field, `expected a whole number, not ${got}`)
}
