import { InputError, parseId, type Id } from '../codec/index.js'
import { inlineSignatures, type Signatures } from '../crypto/signatures.js'
import type { Body, LedgerObject, Receipt } from '../ledger/index.js'
import { readBody, readGenesis, readKnowledge, readObject, readPulse, readReceipt, type PulseClaim } from './answers.js'
import { ask, askOrUnknown, orAborted } from './ask.js'
import { LIGHT_CLIENT_ERRORS, LightClientError } from './errors.js'
import {
  checkBody,
  checkCertificate,
  checkFresh,
  checkGenesis,
  checkHeader,
  checkHeaderTime,
  checkKnowledge,
  checkKnowledgeGrew,
  checkNoRegress,
  checkNumber,
  checkObject,
  checkReceipt,
  type SeenKnowledge,
  type Trust,
} from './rules/index.js'
import type { NodeTransport } from './transport.js'
import { VerifiedHeaders, type VerifiedHeader } from './verified-headers.js'

export interface LightClientOptions {
  transport: NodeTransport
  /** The chain identity to trust. Without it the node vouches for itself, and every answer says `pinned: false`. */
  chain?: Id | undefined
  /** What verifies. A server passes a pool, so that nothing is verified on its event loop. */
  signatures?: Pick<Signatures, 'verify'> | undefined
  /** Milliseconds since the Unix epoch. */
  now?: (() => number) | undefined
  /** How far ahead of `now` a header may be. Default 10,000. */
  maxDriftMs?: number | undefined
  /** How old the newest header may be where a fresh one is needed. Default 60,000; Infinity for any age. */
  maxAgeMs?: number | undefined
  /** How many verified headers are kept, with their certificates (60 kB each with 4 validators). Default 64. */
  keepHeaders?: number | undefined
}

/** A receipt, proven against a certified header. */
export interface VerifiedReceipt extends VerifiedHeader {
  readonly receipt: Receipt
}

/** An object, or its proven absence, in the state after the header's Pulse. */
export interface VerifiedObject {
  readonly object: LedgerObject | undefined
  readonly header: VerifiedHeader
}

/** Claims of the knowledge log, in its order, and the log that they are part of. */
export interface VerifiedKnowledge {
  readonly claims: readonly { readonly claim: Id; readonly index: number }[]
  readonly header: VerifiedHeader
}

export interface KnowledgeOptions extends FreshnessOptions {
  /** The place of the first claim. Default 0. */
  from?: number | undefined
  /** At most this many claims, 0 to 500. Default 100. */
  limit?: number | undefined
  /** The log as it was seen before: it must begin with that. */
  seen?: SeenKnowledge | undefined
}

export interface FreshnessOptions {
  maxAgeMs?: number | undefined
  signal?: AbortSignal | undefined
}

export interface WaitOptions {
  /** How long the node may wait for the receipt, in seconds, at most 60. Default 0. */
  waitSeconds?: number | undefined
  signal?: AbortSignal | undefined
}

/**
 * Answers of a node that are believed because they are proven, not because the node gives them (docs/protocol.md,
 * "The light client"). Every method throws a LightClientError for what is not, an InputError for a wrong call, and the
 * signal's reason when it is aborted. After ConflictingCertificates every method throws that.
 *
 * What it cannot see: a node that serves this client selectively. It shows what the validators certified, not that
 * others were shown the same, nor that they are independent of each other.
 */
export interface LightClient {
  /** The chain's genesis and what follows from it: validators, stake, quorum. Asked for once. */
  trust(): Promise<Trust>
  /** The newest header, and a fresh one. */
  latest(options?: FreshnessOptions): Promise<VerifiedHeader>
  /** The header of Pulse `number`, from 1. `unknown_pulse` if there is none yet. */
  header(number: number, options?: { signal?: AbortSignal | undefined }): Promise<VerifiedHeader>
  /** Undefined if the node knows no receipt by then: that proves nothing, the transaction may still execute. */
  receipt(digest: Id, options?: WaitOptions): Promise<VerifiedReceipt | undefined>
  /** The object as of a fresh header, or its absence. */
  object(id: Id, options?: FreshnessOptions): Promise<VerifiedObject>
  /** Claims of the knowledge log as of a fresh header. */
  knowledge(options?: KnowledgeOptions): Promise<VerifiedKnowledge>
  /** The body that `digest` is the hash of, as the node publishes it. Whether it was executed the receipt says. */
  body(digest: Id, options?: { signal?: AbortSignal | undefined }): Promise<Body>
}

/** @throws InputError for an unknown option, a `chain` that is no id, or a limit that is no number. */
export function createLightClient(options: LightClientOptions): LightClient {
  const {
    transport,
    chain,
    signatures = inlineSignatures,
    now = Date.now,
    maxDriftMs = 10_000,
    maxAgeMs = 60_000,
    keepHeaders = 64,
    ...unknown
  } = options
  // A misspelt `chain` would be a client that trusts the node.
  for (const name of Object.keys(unknown)) throw new InputError(name, 'not an option of a light client')
  if (chain !== undefined) parseId(chain, 'chain')
  limit(maxDriftMs, 'maxDriftMs')
  limit(maxAgeMs, 'maxAgeMs')
  if (!Number.isSafeInteger(keepHeaders) || keepHeaders < 1) {
    throw new InputError('keepHeaders', `expected a whole number from 1, not ${keepHeaders}`)
  }

  // Through the object: a pool is a class, and its method alone would lose it.
  const verify: Signatures['verify'] = (...check) => signatures.verify(...check)
  const headers = new VerifiedHeaders(keepHeaders)
  let trusted: Promise<Trust> | undefined

  async function fetchTrust(): Promise<Trust> {
    const claim = await ask(transport, '/v1/genesis', readGenesis)
    const trust = checkGenesis(claim.genesis, chain)
    if (claim.chain !== trust.chain) {
      throw new LightClientError('wrong_chain', `the node calls its chain ${claim.chain}, but its genesis is that of ${trust.chain}`)
    }
    return trust
  }

  function trust(): Promise<Trust> {
    trusted ??= fetchTrust().catch((error: unknown) => {
      trusted = undefined
      throw error
    })
    return trusted
  }

  async function begin(signal: AbortSignal | undefined): Promise<Trust> {
    headers.throwIfStopped()
    return orAborted(trust(), signal)
  }

  async function fetchPulse(which: number | 'latest', signal?: AbortSignal): Promise<PulseClaim> {
    const answer = await askOrUnknown(transport, `/v1/pulses/${which}`, PULSE_UNKNOWN, readPulse, { signal })
    if ('found' in answer) return answer.found
    const pulse = which === 'latest' ? 'any Pulse' : `Pulse ${which}`
    throw new LightClientError(answer.unknown, `the node does not show ${pulse}: ${LIGHT_CLIENT_ERRORS[answer.unknown]}`)
  }

  /** Cheap checks always, the certificate once for each header. Not under anyone's signal: others may wait for it. */
  async function certified({ number, header: bytes, certificate }: PulseClaim, trust: Trust): Promise<VerifiedHeader> {
    const { header, headerHash } = checkHeader(bytes, trust)
    checkNumber(header, number)
    checkHeaderTime(header, now(), maxDriftMs)
    return headers.once(headerHash, async () => {
      const proof = certificate ?? (await fetchPulse(header.number)).certificate
      if (proof === undefined) {
        throw new LightClientError('node_malformed', `the node shows Pulse ${header.number} without its certificate`)
      }
      const tally = await checkCertificate(header, proof, trust, verify)
      const { chain, pinned } = trust
      return { verified: { header, headerHash, chain, pinned, certificate: tally }, certificate: proof }
    })
  }

  /** A header that the node shows as its newest. `seen` is what it had shown when it was asked. */
  function checkNewest({ header }: VerifiedHeader, seen: number, maxAge: number): void {
    checkNoRegress(header, seen)
    checkFresh(header, now(), maxAge)
  }

  /** Who has verified a header is likely to ask for more of the same Pulse: 80 kB less each time. */
  function certificateWanted(): string {
    return headers.highest === 0 ? '' : 'certificate=0'
  }

  return {
    async trust() {
      return begin(undefined)
    },

    async latest({ maxAgeMs: maxAge = maxAgeMs, signal } = {}) {
      limit(maxAge, 'maxAgeMs')
      const trust = await begin(signal)
      const seen = headers.highest
      const verified = await orAborted(certified(await fetchPulse('latest', signal), trust), signal)
      checkNewest(verified, seen, maxAge)
      return verified
    },

    async header(number, { signal } = {}) {
      if (!Number.isSafeInteger(number) || number < 1) {
        throw new InputError('number', `expected the number of a Pulse, from 1, not ${number}`)
      }
      const trust = await begin(signal)
      const claim = await fetchPulse(number, signal)
      return orAborted(certified({ ...claim, number: sameNumber(claim.number, number) }, trust), signal)
    },

    async receipt(digest, { waitSeconds = 0, signal } = {}) {
      parseId(digest, 'digest')
      if (!(waitSeconds >= 0 && waitSeconds <= MAX_WAIT_SECONDS)) {
        throw new InputError('waitSeconds', `expected seconds from 0 to ${MAX_WAIT_SECONDS}, not ${waitSeconds}`)
      }
      const trust = await begin(signal)
      // The node takes milliseconds as three decimals.
      const wait = Math.round(waitSeconds * 1_000) / 1_000
      const query = [wait > 0 ? `wait=${wait}` : '', certificateWanted()].filter((part) => part !== '').join('&')
      const path = `/v1/receipts/${digest}${query === '' ? '' : `?${query}`}`
      const timeoutMs = waitSeconds * 1_000 + 10_000
      const answer = await askOrUnknown(transport, path, TRANSACTION_UNKNOWN, readReceipt, { signal, timeoutMs })
      if ('unknown' in answer) return undefined
      const claim = answer.found
      const verified = await orAborted(certified(claim.pulse, trust), signal)
      return { ...verified, receipt: checkReceipt(claim.receipt, claim.proof, verified.header, digest) }
    },

    async object(id, { maxAgeMs: maxAge = maxAgeMs, signal } = {}) {
      parseId(id, 'id')
      limit(maxAge, 'maxAgeMs')
      const trust = await begin(signal)
      const seen = headers.highest
      const query = certificateWanted()
      const claim = await ask(transport, `/v1/objects/${id}${query === '' ? '' : `?${query}`}`, readObject, { signal })
      if (claim.id !== id) throw new LightClientError('wrong_object', `asked for object ${id}, the node showed ${claim.id}`)
      const header = await orAborted(certified(claim.pulse, trust), signal)
      checkNewest(header, seen, maxAge)
      return { object: checkObject(id, claim.object, claim.proof, header.header), header }
    },

    async knowledge({ from = 0, limit: most = 100, seen, maxAgeMs: maxAge = maxAgeMs, signal } = {}) {
      whole(from, 'from', 0, Number.MAX_SAFE_INTEGER)
      whole(most, 'limit', 0, MAX_CLAIMS_SHOWN)
      limit(maxAge, 'maxAgeMs')
      if (seen !== undefined) {
        whole(seen.size, 'seen.size', 0, Number.MAX_SAFE_INTEGER)
        parseId(seen.root, 'seen.root')
      }
      const trust = await begin(signal)
      const newest = headers.highest
      const query = [`from=${from}`, `limit=${most}`, `known=${seen?.size ?? 0}`, certificateWanted()].filter((part) => part !== '').join('&')
      const answer = await ask(transport, `/v1/knowledge?${query}`, readKnowledge, { signal })
      const header = await orAborted(certified(answer.pulse, trust), signal)
      checkNewest(header, newest, maxAge)
      if (seen !== undefined) checkKnowledgeGrew(seen, answer.consistency, header.header)
      const claims = checkKnowledge(answer.entries, from, most, header.header)
      return { claims: claims.map((claim, at) => ({ claim, index: from + at })), header }
    },

    async body(digest, { signal } = {}) {
      parseId(digest, 'digest')
      const { chain } = await begin(signal)
      const answer = await askOrUnknown(transport, `/v1/transactions/${digest}`, TRANSACTION_UNKNOWN, readBody, { signal })
      if ('found' in answer) return checkBody(answer.found, digest, chain)
      throw new LightClientError(answer.unknown, `the node does not publish the body of ${digest}`)
    },
  }
}

/** As the node has it. Who wants to wait longer asks again. */
const MAX_WAIT_SECONDS = 60

/** As the node has it. */
const MAX_CLAIMS_SHOWN = 500

const PULSE_UNKNOWN = ['unknown_pulse', 'certificate_dropped'] as const
const TRANSACTION_UNKNOWN = ['unknown_transaction'] as const

/** A number that the node gives, held to what was asked before anything is computed. */
function sameNumber(claimed: number, asked: number): number {
  if (claimed !== asked) throw new LightClientError('wrong_number', `asked for Pulse ${asked}, the node answered with Pulse ${claimed}`)
  return claimed
}

function whole(value: number, field: string, least: number, most: number): void {
  if (!Number.isSafeInteger(value) || value < least || value > most) throw new InputError(field, `expected a whole number from ${least} to ${most}, not ${value}`)
}

function limit(value: number, field: string): void {
  if (!(value >= 0)) throw new InputError(field, `expected a number from 0, not ${value}`)
}
