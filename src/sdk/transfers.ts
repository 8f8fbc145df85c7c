import { describe, fromHex, InputError, isPrintable, parseId, quote, toHex, type Id, type MicroUsd } from '../codec/index.js'
import { randomBytes } from '../crypto/runtime.js'
import {
  digestOf,
  encodeSigned,
  MAX_PURPOSE_BYTES,
  MAX_VALIDITY_PULSES,
  type Action,
  type Body,
  type SignedTransaction,
} from '../ledger/index.js'
import type { Wallet } from './wallet.js'

/** How many Pulses a transaction may wait for its turn where nobody says otherwise. */
export const DEFAULT_VALIDITY_PULSES = 20

/** On which chain, for whom, and until when. */
export interface BuildOptions {
  wallet: Pick<Wallet, 'account'>
  chain: Id
  /** The latest Pulse that the caller knows of. */
  pulse: number
  /** It executes in the next this many Pulses or never: 1 to 1,000, default 20. */
  validForPulses?: number
}

export interface TransferOptions extends BuildOptions {
  to: Id
  amount: MicroUsd
  /** What for, such as `x402:<nonce>`: at most 120 bytes of UTF-8, public on the ledger. Default none. */
  purpose?: string
}

/** A body for any action, under a fresh random nonce: two of them are two transactions, however alike. */
export function buildTransaction(action: Action, { wallet, chain, pulse, validForPulses = DEFAULT_VALIDITY_PULSES }: BuildOptions): Body {
  if (!Number.isSafeInteger(validForPulses) || validForPulses < 1 || validForPulses > MAX_VALIDITY_PULSES) {
    throw new InputError('validForPulses', `expected 1 to ${MAX_VALIDITY_PULSES}, not ${validForPulses}`)
  }
  if (!Number.isSafeInteger(pulse) || pulse < 0) throw new InputError('pulse', `expected a Pulse number, not ${pulse}`)
  return {
    chain: parseId(chain, 'chain'),
    signer: wallet.account,
    nonce: toHex(randomBytes(16)),
    validUntil: pulse + validForPulses,
    action,
  }
}

/** The body of a payment. @throws InputError naming the field. */
export function buildTransfer({ to, amount, purpose = '', ...options }: TransferOptions): Body {
  if (amount <= 0n) throw new InputError('amount', 'expected more than 0 USD')
  return buildTransaction({ kind: 'transfer', to: parseId(to, 'to'), amount, purpose: parsePurpose(purpose, 'purpose') }, options)
}

/** What the ledger takes as a purpose. @throws InputError naming `field`. */
export function parsePurpose(text: unknown, field: string): string {
  return parseText(text, field, MAX_PURPOSE_BYTES)
}

/** A text as the ledger takes it: printable, at most `most` bytes of UTF-8. @throws InputError naming `field`. */
export function parseText(text: unknown, field: string, most: number): string {
  if (typeof text !== 'string') throw new InputError(field, `expected text, not ${describe(text)}`)
  const bytes = new TextEncoder().encode(text).length
  if (bytes > most) throw new InputError(field, `${bytes} bytes; at most ${most}`)
  if (!isPrintable(text)) {
    throw new InputError(field, `${quote(text)} has a control character or a lone surrogate`)
  }
  return text
}

/** What the ledger needs beside the payment's own signature. */
export interface SigningState {
  /** The ledger has recorded the account's keys: they need not travel. */
  readonly keysKnown: boolean
  /** The account, or what the action rests on, asks for both signatures. */
  readonly dual: boolean
}

/** A signed transaction with its name and its bytes. Whoever holds it can have it executed: keep it from logs. */
export interface Signed {
  readonly digest: Id
  readonly body: Body
  readonly transaction: SignedTransaction
  /** Its canonical encoding, as it is submitted. */
  readonly bytes: Uint8Array
}

/**
 * Signs a body, whatever it says: show its intent sentence first.
 * @throws InputError if the body is another signer's.
 */
export async function signTransaction(wallet: Wallet, body: Body, { keysKnown, dual }: SigningState): Promise<Signed> {
  if (body.signer !== wallet.account) {
    throw new InputError('wallet', `account ${wallet.account} cannot sign for ${body.signer}`)
  }
  const digest = digestOf(body)
  const message = fromHex(digest, 'digest', 32)
  const { mlDsa, slhDsa } = dual ? await wallet.signDual(message) : { ...(await wallet.sign(message)), slhDsa: undefined }
  const transaction: SignedTransaction = {
    body,
    ...(keysKnown ? {} : { keys: wallet.publicKeys }),
    mlDsa,
    ...(slhDsa === undefined ? {} : { slhDsa }),
  }
  return { digest, body, transaction, bytes: encodeSigned(transaction) }
}
