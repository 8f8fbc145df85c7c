import { messageOf, SionError, type Id, type MicroUsd } from '../codec/index.js'
import { EMPTY_ACCOUNT, intentSentence, needsBothSignatures, shortNames, type Account, type Action, type Body, type Names } from '../ledger/index.js'
import { isNodeAway, LightClientError, type LightClient, type VerifiedObject, type VerifiedReceipt } from '../light/index.js'
import type { NodeClient } from './node-client.js'
import { buildTransaction, parsePurpose, signTransaction, type Signed } from './transfers.js'
import type { Wallet } from './wallet.js'

/** One node, asked in two ways: the light client for what must be true, the node client for the rest. */
export interface Ledger {
  readonly client: LightClient
  readonly node: NodeClient
}

/**
 * What became of a transaction. `settled` and `failed` are proven by a verified receipt; `refused` is the node's word
 * that it never entered a Pulse. `unknown` is none of them: it may have executed, or still may until Pulse `validUntil`.
 * Nothing may be signed in its place; ask again about the same digest ({@link awaitOutcome}).
 */
export type Outcome =
  | { readonly kind: 'settled' | 'failed'; readonly digest: Id; readonly receipt: VerifiedReceipt }
  | { readonly kind: 'refused'; readonly digest: Id; readonly code: string; readonly reason: string }
  | { readonly kind: 'unknown'; readonly digest: Id; readonly reason: string; readonly validUntil?: number; readonly cause?: unknown }

export interface WaitForOutcome {
  /** How long to wait for the receipt. Default 30. */
  waitSeconds?: number
  signal?: AbortSignal
}

export interface TransactOptions extends WaitForOutcome {
  /** 1 to 1,000, default 20. */
  validForPulses?: number
  /** How the intent calls accounts. Default: the first eight digits of their ids. */
  names?: Names
  /** Gets what is about to be signed. If it throws, nothing is signed. */
  onIntent?: (sentence: string, body: Body) => void | Promise<void>
  /** Just before the signed bytes leave: the moment to write the digest down. If it throws, nothing is sent. */
  onSend?: (signed: Signed) => void | Promise<void>
}

/**
 * Builds, shows, signs and submits one transaction, and waits for its verified receipt. It signs once and submits once;
 * whatever goes wrong after that is an outcome, not an error.
 * @throws InputError, LightClientError or SionError while nothing has been sent, or where the node certainly took nothing.
 */
export async function transact(ledger: Ledger, wallet: Wallet, action: Action, options: TransactOptions = {}): Promise<Outcome> {
  const { names = shortNames, onIntent, signal, validForPulses } = options
  const { chain, genesis } = await ledger.client.trust()
  const { account, pulse } = await provenAccount(ledger.client, wallet.account, signal)
  const body = buildTransaction(action, { wallet, chain, pulse, ...(validForPulses === undefined ? {} : { validForPulses }) })
  await onIntent?.(intentSentence(body, genesis.parameters, names), body)
  const signed = await signTransaction(wallet, body, { keysKnown: account.keys !== undefined, dual: account.dual || needsBothSignatures(action) })
  return submitAndWait(ledger, signed, options)
}

export interface PayOptions extends TransactOptions {
  to: Id
  amount: MicroUsd
  purpose?: string
}

/** {@link transact} for a payment. */
export async function pay(ledger: Ledger, wallet: Wallet, { to, amount, purpose = '', ...options }: PayOptions): Promise<Outcome> {
  return transact(ledger, wallet, { kind: 'transfer', to, amount, purpose: parsePurpose(purpose, 'purpose') }, options)
}

/** Submits what is signed already, and waits for its receipt. The same bytes may be given again: they execute once. */
export async function submitAndWait(
  ledger: { readonly client: Pick<LightClient, 'receipt'>; readonly node: Pick<NodeClient, 'submit'> },
  signed: Signed,
  options: Pick<TransactOptions, 'onSend' | 'waitSeconds' | 'signal'> = {},
): Promise<Outcome> {
  const { digest } = signed
  options.signal?.throwIfAborted()
  await options.onSend?.(signed)
  const submission = await ledger.node.submit(signed.bytes, options.signal === undefined ? {} : { signal: options.signal })
  if (submission.kind === 'refused') return { kind: 'refused', digest, code: submission.code, reason: submission.reason }
  const outcome = await awaitOutcome(ledger.client, digest, options)
  if (outcome.kind !== 'unknown') return outcome
  const reason = submission.kind === 'unknown' ? submission.reason : outcome.reason
  return { ...outcome, reason, validUntil: signed.body.validUntil }
}

/**
 * What became of a transaction, by its receipt. Never throws for what a node does: an answer that does not verify leaves
 * the outcome `unknown`, with the LightClientError as its `cause`.
 */
export async function awaitOutcome(client: Pick<LightClient, 'receipt'>, digest: Id, options: WaitForOutcome = {}): Promise<Exclude<Outcome, { kind: 'refused' }>> {
  const { waitSeconds = 30, signal } = options
  try {
    const receipt = await waitForReceipt(client, digest, { ...options, waitSeconds })
    if (receipt === undefined) return { kind: 'unknown', digest, reason: `no receipt within ${waitSeconds} s` }
    return { kind: receipt.receipt.outcome.kind === 'success' ? 'settled' : 'failed', digest, receipt }
  } catch (cause) {
    return { kind: 'unknown', digest, reason: signal?.aborted === true ? 'stopped waiting' : messageOf(cause), cause }
  }
}

/**
 * The verified receipt, or undefined if there is none after `waitSeconds`. Waits through a node that goes away and comes
 * back.
 * @throws LightClientError for an answer that does not verify, and for a node that is away at the end of the wait; the
 * signal's reason.
 */
export async function waitForReceipt(
  client: Pick<LightClient, 'receipt'>,
  digest: Id,
  { waitSeconds = 30, signal }: WaitForOutcome = {},
): Promise<VerifiedReceipt | undefined> {
  const deadline = Date.now() + waitSeconds * 1_000
  let pause = 100
  for (;;) {
    const left = Math.max(0, deadline - Date.now()) / 1_000
    try {
      const receipt = await client.receipt(digest, { waitSeconds: Math.min(left, LONGEST_POLL_SECONDS), signal })
      if (receipt !== undefined || Date.now() >= deadline) return receipt
    } catch (error) {
      if (!isNodeAway(error) || Date.now() >= deadline) throw error
    }
    // An honest node has done the waiting. One that is away, or answers too soon, is not asked in a tight loop.
    await sleep(Math.min(pause, Math.max(0, deadline - Date.now())), signal)
    pause = Math.min(2 * pause, 2_000)
  }
}

/** Nodes wait for at most 60 s at one go. */
const LONGEST_POLL_SECONDS = 30

/** An account proven against a fresh header; one that nobody paid yet is proven to be empty. */
export async function provenAccount(
  client: Pick<LightClient, 'object'>,
  id: Id,
  signal?: AbortSignal,
): Promise<{ account: Account; pulse: number; header: VerifiedObject['header'] }> {
  const { object, header } = await client.object(id, { signal })
  if (object !== undefined && object.kind !== 'account') {
    throw new SionError('not_an_account', `${id} is a ${object.kind}, not an account`)
  }
  return { account: object ?? EMPTY_ACCOUNT, pulse: header.header.number, header }
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, signal?.aborted === true ? 0 : ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Whether an error says that the chain, or the node, cannot take transactions now. */
export function isLedgerAway(error: unknown): boolean {
  return isNodeAway(error) || (error instanceof SionError && error.code === 'chain_halted') || (error instanceof LightClientError && error.code === 'stale_header')
}
