import { formatUsd, InputError, parseId, SionError, type Id, type MicroUsd } from '../../codec/index.js'
import { randomBytes } from '../../crypto/runtime.js'
import { CHECKPOINT_EVERY, SALT_LENGTH } from '../../crypto/chain-step.js'
import { streamId, type Stream, type StreamClaim } from '../../ledger/index.js'
import type { LightClient } from '../../light/index.js'
import { transact, type Ledger, type Outcome, type TransactOptions } from '../transact.js'
import type { Wallet } from '../wallet.js'
import { PayerChain } from './payer-chain.js'
import type { StreamSecret } from './stream-secret.js'

/** How long a stream lasts where nobody says otherwise: at four Pulses a second about seven hours, on an idle chain days. */
export const DEFAULT_STREAM_PULSES = 100_000

/** A stream as of a Pulse. */
export interface ProvenStream {
  readonly stream: Stream
  readonly pulse: number
}

/**
 * A stream, proven against a fresh header; undefined where the ledger proves that there is none.
 * @throws LightClientError; SionError `not_a_stream`.
 */
export async function readStream(client: LightClient, id: Id, options: { signal?: AbortSignal } = {}): Promise<{ stream: Stream | undefined; pulse: number }> {
  const { object, header } = await client.object(id, options)
  if (object !== undefined && object.kind !== 'stream') {
    throw new SionError('not_a_stream', `${id} is a ${object.kind}, not a stream`)
  }
  return { stream: object, pulse: header.header.number }
}

export interface NewStream {
  readonly payee: Id
  /** Micro-USD a step. */
  readonly stepValue: MicroUsd
  /** Steps: 1 to 2^32 − 1. A payer takes a byte of memory for two of them, and half a microsecond for each at its start. */
  readonly length: number
  /** Micro-USD, at most `length` steps' worth. */
  readonly escrow: MicroUsd
  /** It lasts this many Pulses from now: until then the escrow can only be paid out. Default 100,000. */
  readonly pulses?: number
}

export interface OpenStreamOptions extends TransactOptions {
  /** Keeps the secret before the transaction is sent, and forgets it only where that certainly did nothing. */
  readonly keep: { save(secret: StreamSecret): Promise<void>; forget(stream: Id): Promise<void> }
  /** Told while the chain is walked. */
  readonly onProgress?: (done: number, total: number) => void
}

export interface OpenedStream {
  readonly outcome: Outcome
  /** There is such a stream where the outcome is `settled`, and there may be where it is `unknown`. */
  readonly secret: StreamSecret
  readonly elements: PayerChain
}

/**
 * Opens a stream from `wallet` under a fresh chain.
 * @throws InputError, and what {@link transact} throws: then there is no stream, and no secret is kept.
 */
export async function openStream(ledger: Ledger, wallet: Wallet, terms: NewStream, options: OpenStreamOptions): Promise<OpenedStream> {
  const { keep, onProgress, onSend, ...transactOptions } = options
  const { payee, stepValue, length, escrow, pulses = DEFAULT_STREAM_PULSES } = terms
  checkTerms(terms)
  const chainSecret = { seed: randomBytes(32), salt: randomBytes(SALT_LENGTH), length }
  const elements = await PayerChain.build(chainSecret, onProgress === undefined ? {} : { onProgress })
  const { anchor, salt, checkpointRoot } = elements
  const { header } = await ledger.client.latest(options.signal === undefined ? {} : { signal: options.signal })
  const lastPulse = header.number + pulses
  let secret: StreamSecret | undefined
  let outcome: Outcome
  try {
    outcome = await transact(
      ledger,
      wallet,
      { kind: 'openStream', payee, anchor, salt, checkpointRoot, length, stepValue, escrow, lastPulse },
      {
        ...transactOptions,
        async onSend(signed) {
          const { digest, body } = signed
          secret = {
            ...chainSecret,
            stream: streamId(digest),
            digest,
            validUntil: body.validUntil,
            chain: body.chain,
            payer: wallet.account,
            ...(wallet.name === undefined ? {} : { wallet: wallet.name }),
            payee,
            stepValue,
            escrow,
            lastPulse,
          }
          await keep.save(secret)
          await onSend?.(signed)
        },
      },
    )
  } catch (error) {
    // What throws has certainly sent nothing.
    if (secret !== undefined) await keep.forget(secret.stream)
    throw error
  }
  if (secret === undefined) throw new SionError('stream_unwritable', 'a transaction was sent without its secret being kept')
  if (outcome.kind === 'refused' || outcome.kind === 'failed') await keep.forget(secret.stream)
  return { outcome, secret, elements }
}

export interface TopUp {
  readonly stream: Id
  /** Micro-USD to add; 0 for none. */
  readonly amount: MicroUsd
  /** Let it last this many Pulses from now, if that is longer than it does. Default: leave its end. */
  readonly pulses?: number
}

/** @throws SionError `unknown_stream`, and what {@link transact} throws. */
export async function topUpStream(ledger: Ledger, wallet: Wallet, { stream: id, amount, pulses }: TopUp, options: TransactOptions = {}): Promise<Outcome> {
  const { stream, pulse } = await existing(ledger.client, id, options.signal)
  const lastPulse = Math.max(stream.lastPulse, pulse + (pulses ?? 0))
  return transact(ledger, wallet, { kind: 'topUpStream', stream: id, amount, lastPulse }, options)
}

/** The payee at any time, the payer after the last Pulse. What is not settled by then goes back to the payer. */
export async function closeStream(ledger: Ledger, wallet: Wallet, stream: Id, options: TransactOptions = {}): Promise<Outcome> {
  return transact(ledger, wallet, { kind: 'closeStream', stream: parseId(stream, 'stream') }, options)
}

/** Has the ledger pay a payee up to `claim.position`. Anyone may: it moves what the element proves, and no more. */
export async function settleStream(ledger: Ledger, wallet: Wallet, claim: StreamClaim, options: TransactOptions = {}): Promise<Outcome> {
  return transact(ledger, wallet, { kind: 'settleStreams', claims: [claim] }, options)
}

/** The claim that settles up to `position` from the payer's own chain: by walk or by jump, whichever is fewer hashes. */
export function claimOf(stream: Id, elements: PayerChain, position: number, settled: number): StreamClaim {
  const claim = { stream, position, element: elements.reveal(position) }
  const jump = elements.jump(position)
  if (jump === undefined) return claim
  const jumpHashes = position - jump.index * CHECKPOINT_EVERY + jump.path.length + 1
  return jumpHashes < position - settled ? { ...claim, jump } : claim
}

/** The stream, which must be there. @throws SionError `unknown_stream`. */
export async function existing(client: LightClient, id: Id, signal?: AbortSignal): Promise<ProvenStream> {
  const { stream, pulse } = await readStream(client, id, signal === undefined ? {} : { signal })
  if (stream === undefined) throw new SionError('unknown_stream', `the ledger has no stream ${id} at Pulse ${pulse}`)
  return { stream, pulse }
}

/** What the ledger would refuse, before a chain is walked for it. */
function checkTerms({ payee, stepValue, length, escrow, pulses = DEFAULT_STREAM_PULSES }: NewStream): void {
  parseId(payee, 'payee')
  if (stepValue <= 0n) throw new InputError('stepValue', 'expected more than 0 USD')
  if (escrow < stepValue) throw new InputError('escrow', `${formatUsd(escrow)} USD is less than one step of ${formatUsd(stepValue)} USD`)
  const most = BigInt(length) * stepValue
  if (escrow > most) throw new InputError('escrow', `${formatUsd(escrow)} USD is more than ${length} steps of ${formatUsd(stepValue)} USD can ever pay`)
  if (!Number.isSafeInteger(pulses) || pulses < 1) throw new InputError('pulses', `expected a whole number from 1, not ${pulses}`)
}
