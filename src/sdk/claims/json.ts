import { formatUsd, MAX_AMOUNT, type Id } from '../../codec/index.js'
import { atomId, atomsOf, shortNames, type Bond, type Cost, type Names, type PricedAtom } from '../../ledger/index.js'
import { outcomeJson, type OutcomeJson } from '../json.js'
import type { Outcome } from '../transact.js'
import { claimStatus, issuedClaim, type Assessment, type ClaimStatus, type ProvenClaim } from './claims.js'
import { formulaText } from './formula-text.js'

/** sion_issue_claim, where the claim is on record; every other outcome as any transaction's. */
export type ClaimIssuedJson = { claim: Id; pulse: number; receipt: string; status: 'Success'; submitted: true } | OutcomeJson

/** A cost in micro-USD, or more than anyone has. */
export type CostJson = 'Infinite' | { Finite: number }

export interface AtomJson {
  id: Id
  atom: string
  trusted: boolean
  cost: CostJson
  unreserved: CostJson
}

/** sion_assess_claim */
export interface AssessmentJson {
  atoms: AtomJson[]
  claim: string
  decision: {
    accept: boolean
    adjudicator_cap: CostJson
    coc: { exact: boolean; high: CostJson; low: CostJson }
    detection_adjusted: CostJson
    effective: CostJson
    reasons: string[]
    /** κ·V in micro-USD. */
    required: number
    reservable: CostJson
  }
  status: ClaimStatus
}

export interface ClaimJson {
  adjudicator: string | null
  atoms: { atom: string; id: Id }[]
  claim: Id
  detection_permille: number
  formula: string
  issued: number
  issuer: Id
  last_pulse: number
  log_index: number
  pulse: number
  schema: string
  source: Id
  status: ClaimStatus
  subject: string
}

export interface BondJson {
  amount: string
  held_until: number
  id: Id
  label: string
  owner: Id
  pulse: number
  reserved: string
}

export function claimIssuedJson(outcome: Outcome, names: Names = shortNames): ClaimIssuedJson {
  const json = outcomeJson(outcome, names)
  const claim = issuedClaim(outcome)
  if (claim === undefined || !('receipt' in json) || json.status !== 'Success') return json
  return { claim, pulse: json.pulse, receipt: json.receipt, status: json.status, submitted: true }
}

export function assessmentJson({ claim, pulse, decision }: Assessment, names: Names = shortNames): AssessmentJson {
  const { accept, adjudicatorCap, corruption, detectionAdjusted, effective, reasons, required, reservable, atoms } = decision
  return {
    atoms: atoms.map((priced) => atomJson(priced, claim.issuer, names)),
    claim: claim.subject,
    decision: {
      accept,
      adjudicator_cap: costJson(adjudicatorCap),
      coc: { exact: corruption.exact, high: costJson(corruption.high), low: costJson(corruption.low) },
      detection_adjusted: costJson(detectionAdjusted),
      effective: costJson(effective),
      reasons: [...reasons],
      required: Number(required),
      reservable: costJson(reservable),
    },
    status: claimStatus({ claim, pulse }),
  }
}

export function claimJson({ id, claim, pulse }: ProvenClaim, names: Names = shortNames): ClaimJson {
  const { issuer, formula, adjudicator } = claim
  const whole = adjudicator === undefined ? formula : ({ kind: 'allOf', of: [formula, adjudicator] } as const)
  return {
    adjudicator: adjudicator === undefined ? null : formulaText(adjudicator, issuer, names),
    atoms: [...atomsOf(whole)].map(([atomKey, atom]) => ({ atom: formulaText(atom, issuer, names), id: atomKey })),
    claim: id,
    detection_permille: claim.detection,
    formula: formulaText(formula, issuer, names),
    issued: claim.issued,
    issuer,
    last_pulse: claim.lastPulse,
    log_index: claim.logIndex,
    pulse,
    schema: claim.schema,
    source: claim.source,
    status: claimStatus({ claim, pulse }),
    subject: claim.subject,
  }
}

export function bondJson(bond: Bond, pulse: number): BondJson {
  const { owner, label, amount, reserved, heldUntil } = bond
  return {
    amount: formatUsd(amount),
    held_until: heldUntil,
    id: atomId({ kind: 'bond', owner, label }),
    label,
    owner,
    pulse,
    reserved: formatUsd(reserved),
  }
}

function atomJson({ id, atom, trusted, cost, backing }: PricedAtom, issuer: Id, names: Names): AtomJson {
  return { id, atom: formulaText(atom, issuer, names), trusted, cost: costJson(cost), unreserved: costJson(backing) }
}

/** Sums of several atoms can pass what a JSON number says exactly: more than all money is written as all money. */
function costJson(cost: Cost): CostJson {
  return cost === 'infinite' ? 'Infinite' : { Finite: Number(cost < MAX_AMOUNT ? cost : MAX_AMOUNT) }
}
