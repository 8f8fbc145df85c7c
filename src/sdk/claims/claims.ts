import { InputError, parseId, quote, SionError, type Id, type MicroUsd } from '../../codec/index.js'
import {
  atomsOf,
  bondId,
  CERTAIN_DETECTION,
  decide,
  DUAL_SIGNATURE,
  MAX_CLAIM_PULSES,
  MAX_KAPPA,
  MAX_LABEL_BYTES,
  MAX_SCHEMA_BYTES,
  MAX_SUBJECT_BYTES,
  type Atom,
  type Bond,
  type Claim,
  type Decision,
  type Formula,
  type Policy,
} from '../../ledger/index.js'
import type { LightClient } from '../../light/index.js'
import { transact, type Ledger, type Outcome, type TransactOptions } from '../transact.js'
import { parseText } from '../transfers.js'
import type { Wallet } from '../wallet.js'

/** How long a claim holds where nobody says otherwise, in Pulses. */
export const DEFAULT_CLAIM_PULSES = 100_000
/** How to read a claim where nobody says: a note for people. */
export const DEFAULT_SCHEMA = 'note/v1'

export interface NewClaim {
  /** What is claimed: 1 to 1,024 bytes of UTF-8. */
  readonly subject: string
  /** How to read it. Default `note/v1`. */
  readonly schema?: string
  /** What it rests on; its bonds are the issuer's. Default: the issuer's dual signature. */
  readonly formula?: Formula
  /** Whose corruption would let a falsehood pass. Default nobody's. */
  readonly adjudicator?: Atom
  /** How likely a falsehood is found out, in thousandths: 1 to 1,000. Default 1,000. */
  readonly detection?: number
  /** It holds for this many Pulses from now. Default 100,000. */
  readonly pulses?: number
}

/**
 * Puts a claim on record under `wallet`'s signature: both of them, where the formula says so.
 * @throws InputError naming the field, and what {@link transact} throws.
 */
export async function issueClaim(ledger: Ledger, wallet: Wallet, claim: NewClaim, options: TransactOptions = {}): Promise<Outcome> {
  const { subject, schema = DEFAULT_SCHEMA, formula = DUAL_SIGNATURE, adjudicator, detection = CERTAIN_DETECTION, pulses = DEFAULT_CLAIM_PULSES } = claim
  if (parseText(subject, 'subject', MAX_SUBJECT_BYTES) === '') throw new InputError('subject', 'expected what is claimed, not nothing')
  if (parseText(schema, 'schema', MAX_SCHEMA_BYTES) === '') throw new InputError('schema', `expected how to read the claim, such as ${DEFAULT_SCHEMA}`)
  inRange(detection, 'detection', CERTAIN_DETECTION)
  inRange(pulses, 'pulses', MAX_CLAIM_PULSES)
  for (const atom of atomsOf(formula).values()) {
    if (atom.kind === 'bond' && atom.owner !== wallet.account) throw new InputError('formula', `a claim rests on bonds of its issuer alone, and ${atom.label} is another's`)
  }
  const { header } = await ledger.client.latest(options.signal === undefined ? {} : { signal: options.signal })
  const lastPulse = header.number + pulses
  return transact(ledger, wallet, { kind: 'issueClaim', subject, schema, formula, adjudicator, detection, lastPulse }, options)
}

/** κ as decimal text such as `2` or `1.5`, in millionths. @throws InputError naming `field`: more than 6 decimals, 0, over 1,000. */
export function parseKappa(text: string, field: string): bigint {
  const match = /^(0|[1-9][0-9]{0,3})(?:\.([0-9]{1,6}))?$/.exec(text)
  const kappa = match === null ? 0n : BigInt(match[1] ?? '0') * 1_000_000n + BigInt((match[2] ?? '').padEnd(6, '0'))
  if (kappa === 0n || kappa > MAX_KAPPA) throw new InputError(field, `expected a factor above 0 and up to 1000, such as 2 or 1.5, not ${quote(text)}`)
  return kappa
}

/** The claim that a transaction put on record, if it did. */
export function issuedClaim(outcome: Outcome): Id | undefined {
  if (outcome.kind !== 'settled') return undefined
  for (const event of outcome.receipt.receipt.events) if (event.kind === 'ClaimSubmitted') return event.claim
  return undefined
}

export interface BondChange {
  /** Which bond of the wallet's: 1 to 64 bytes of UTF-8. */
  readonly label: string
  /** Micro-USD. */
  readonly amount: MicroUsd
}

/** Puts money into a bond, which begins with the first deposit. @throws InputError, and what {@link transact} throws. */
export async function depositBond(ledger: Ledger, wallet: Wallet, change: BondChange, options: TransactOptions = {}): Promise<Outcome> {
  return transact(ledger, wallet, { kind: 'depositBond', ...parseChange(change) }, options)
}

/** Takes money back, once no claim rests on the bond any more. @throws InputError, and what {@link transact} throws. */
export async function withdrawBond(ledger: Ledger, wallet: Wallet, change: BondChange, options: TransactOptions = {}): Promise<Outcome> {
  return transact(ledger, wallet, { kind: 'withdrawBond', ...parseChange(change) }, options)
}

/** A bond, proven against a fresh header; undefined where the ledger proves that nobody ever put money there. */
export async function readBond(client: LightClient, owner: Id, label: string, options: { signal?: AbortSignal } = {}): Promise<{ bond: Bond | undefined; pulse: number }> {
  const { object, header } = await client.object(bondId(owner, label), options)
  if (object !== undefined && object.kind !== 'bond') throw new SionError('not_a_bond', `the object there is a ${object.kind}, not a bond`)
  return { bond: object, pulse: header.header.number }
}

/** A claim as of a Pulse. */
export interface ProvenClaim {
  readonly id: Id
  readonly claim: Claim
  readonly pulse: number
}

/** A claim, proven against a fresh header. @throws LightClientError; SionError `unknown_claim`, `not_a_claim`. */
export async function readClaim(client: LightClient, id: Id, options: { signal?: AbortSignal } = {}): Promise<ProvenClaim> {
  const { object, header } = await client.object(parseId(id, 'claim'), options)
  const pulse = header.header.number
  if (object === undefined) throw new SionError('unknown_claim', `the ledger has no claim ${id} at Pulse ${pulse}`)
  if (object.kind !== 'claim') throw new SionError('not_a_claim', `${id} is a ${object.kind}, not a claim`)
  return { id, claim: object, pulse }
}

export type ClaimStatus = 'Active' | 'Expired'

export function claimStatus({ claim, pulse }: Pick<ProvenClaim, 'claim' | 'pulse'>): ClaimStatus {
  return pulse > claim.lastPulse ? 'Expired' : 'Active'
}

/** A claim, the bonds that it and its adjudicator rest on, and what a policy makes of them. */
export interface Assessment extends ProvenClaim {
  readonly bonds: ReadonlyMap<Id, Bond>
  readonly decision: Decision
}

/**
 * Whether to rely on a claim. Everything it rests on is read with proofs; each at the newest Pulse when it was asked for.
 * @throws InputError for a policy out of range, and as {@link readClaim}.
 */
export async function assessClaim(client: LightClient, id: Id, policy: Policy, options: { signal?: AbortSignal } = {}): Promise<Assessment> {
  const proven = await readClaim(client, id, options)
  const { formula, adjudicator } = proven.claim
  const atoms = atomsOf(adjudicator === undefined ? formula : { kind: 'allOf', of: [formula, adjudicator] })
  const bonds = new Map<Id, Bond>()
  let { pulse } = proven
  for (const [bondKey, atom] of atoms) {
    if (atom.kind !== 'bond') continue
    const found = await readBond(client, atom.owner, atom.label, options)
    if (found.bond !== undefined) bonds.set(bondKey, found.bond)
    pulse = Math.max(pulse, found.pulse)
  }
  return { ...proven, pulse, bonds, decision: decide(proven.claim, (bond) => bonds.get(bond), pulse, policy) }
}

function parseChange({ label, amount }: BondChange): BondChange {
  parseText(label, 'label', MAX_LABEL_BYTES)
  if (label === '') throw new InputError('label', 'expected a label, such as audit')
  if (amount <= 0n) throw new InputError('amount', 'expected more than 0 USD')
  return { label, amount }
}

function inRange(value: number, field: string, most: number): void {
  if (!Number.isSafeInteger(value) || value < 1 || value > most) throw new InputError(field, `expected a whole number from 1 to ${most}, not ${value}`)
}
