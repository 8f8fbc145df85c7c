import { beforeEach, describe, expect, it } from 'vitest'
import { SIZES } from '../../src/crypto/keys.js'
import {
  bondId,
  claimId,
  digestOf,
  DUAL_SIGNATURE,
  intentSentence,
  DEFAULT_PARAMETERS,
  issuedClaims,
  knowledgeOf,
  MAX_CLAIM_PULSES,
  receiptSentence,
  type Bond,
  type Formula,
  type IssueClaim,
} from '../../src/ledger/index.js'
import { depositBond, issueClaim, recordClaim, withdrawBond } from '../../src/ledger/rules/claims.js'
import { EMPTY_LOG_ROOT, LogTree } from '../../src/merkle/index.js'
import { claimLeaf } from '../../src/ledger/index.js'
import { toHex } from '../../src/codec/index.js'
import { signed, signer, World } from './world.js'

const dana = signer(1)
const erin = signer(2)
const slhDsa = new Uint8Array(SIZES.slhDsaSignature)
const LABEL = 'delivery'
const onBond = (owner = dana): Formula => ({ kind: 'bond', owner: owner.id, label: LABEL })

function claiming(more: Partial<IssueClaim> = {}): IssueClaim {
  return { kind: 'issueClaim', subject: 'Invoice 88 was paid in full', schema: 'note/v1', formula: DUAL_SIGNATURE, detection: 1_000, lastPulse: 2_010, ...more }
}

let world: World
beforeEach(() => {
  world = new World().give(dana.id, 10_000_000n).give(erin.id, 10_000_000n)
})

function bond(owner = dana): Bond {
  const found = world.state.get(bondId(owner.id, LABEL))
  if (found?.kind !== 'bond') throw new Error('no bond')
  return found
}

describe('issuing a claim', () => {
  it('puts it on record at the next place of the log, for the fee of what it creates', () => {
    const log = new LogTree()
    for (const subject of ['one', 'two', 'three']) {
      const tx = { ...signed(dana, claiming({ subject })), slhDsa }
      const result = world.execute(tx)
      if (result.kind !== 'executed') throw new Error(result.reason)
      const [issued, ...others] = issuedClaims(result.writes)
      if (issued === undefined) throw new Error('nothing was issued')
      expect(others).toEqual([])
      log.append(claimLeaf(issued.claim))
      expect([result.fee, issued.logIndex]).toEqual([1_100n, log.size - 1])
      expect(knowledgeOf(world.state)).toEqual({ knowledgeRoot: toHex(log.root()), knowledgeSize: log.size })
      expect(receiptSentence(result)).toBe(`Done: claim ${issued.claim.slice(0, 8)} submitted; fee 0.0011 USD.`)
      const claim = world.state.get(issued.claim)
      if (claim?.kind !== 'claim') throw new Error('no claim')
      expect(claim).toMatchObject({ source: digestOf(tx.body), issuer: dana.id, subject, issued: 10, lastPulse: 2_010 })
      expect(claimId(claim)).toBe(issued.claim)
    }
  })

  it('is shown to its signer with what it rests on', () => {
    const { body } = signed(dana, claiming())
    expect(intentSentence(body, DEFAULT_PARAMETERS)).toBe(
      'Claim “Invoice 88 was paid in full” (note/v1), resting on all of (ML-DSA-44, SLH-DSA-SHA2-128f), until Pulse 2010. Fee 0.0011 USD; valid until Pulse 20.',
    )
  })

  it('needs both signatures where it rests on both families, and one where it rests on a bond', () => {
    expect(world.execute(signed(dana, claiming()))).toMatchObject({ kind: 'inadmissible', code: 'missing_signature' })
    world.execute(signed(dana, { kind: 'depositBond', label: LABEL, amount: 1n }))
    expect(world.execute(signed(dana, claiming({ formula: onBond() })))).toMatchObject({ kind: 'executed', outcome: { kind: 'success' } })
  })

  it('rests on its issuer’s own bonds alone, with money in them', () => {
    expect(world.ask(issueClaim, claiming({ formula: onBond() }), dana)).toEqual({ failed: 'invalid transaction: no money in the bond delivery' })
    world.execute(signed(erin, { kind: 'depositBond', label: LABEL, amount: 5n }))
    expect(world.ask(issueClaim, claiming({ formula: onBond(erin) }), dana)).toEqual({
      failed: 'unauthorized: a claim rests on bonds of its issuer alone',
    })
  })

  it.each([
    [{ subject: '' }, 'a claim of nothing'],
    [{ schema: '' }, 'a claim without a schema'],
    [{ detection: 0 }, 'a detection of 0, not 1 to 1000 thousandths'],
    [{ detection: 1_001 }, 'a detection of 1001, not 1 to 1000 thousandths'],
    [{ lastPulse: 9 }, 'a claim until Pulse 9, which is over'],
    [{ lastPulse: 11 + MAX_CLAIM_PULSES }, `a claim for more than ${MAX_CLAIM_PULSES} Pulses`],
  ])('refuses %j', (more, reason) => {
    expect(world.ask(issueClaim, claiming(more), dana)).toEqual({ failed: `invalid transaction: ${reason}` })
  })

  it('holds from this Pulse to the farthest there is, both included', () => {
    for (const lastPulse of [10, 10 + MAX_CLAIM_PULSES]) expect(world.ask(issueClaim, claiming({ lastPulse }), dana)).not.toHaveProperty('failed')
  })

  it('the same said twice is two claims', () => {
    const ids = [0, 1].map(() => {
      const result = world.execute({ ...signed(dana, claiming()), slhDsa })
      return result.kind === 'executed' ? issuedClaims(result.writes)[0]?.claim : undefined
    })
    expect(new Set(ids).size).toBe(2)
    expect(knowledgeOf(world.state).knowledgeSize).toBe(2)
  })

  it('an empty log has the root of an empty tree', () => {
    expect(knowledgeOf(world.state)).toEqual({ knowledgeRoot: toHex(EMPTY_LOG_ROOT), knowledgeSize: 0 })
  })

  it('another rule can put a statement on record too', () => {
    const statement = { source: '1'.repeat(64), issuer: dana.id, subject: 's', schema: 'receipt/v1', formula: DUAL_SIGNATURE, detection: 1_000, issued: 10, lastPulse: 20 }
    const { claim, writes } = recordClaim(world.state, statement)
    for (const [id, object] of writes) world.put(id, object)
    expect(claim).toBe(claimId(statement))
    expect(knowledgeOf(world.state).knowledgeSize).toBe(1)
    // Whatever is different is another claim.
    const others = [{ source: '2'.repeat(64) }, { issuer: erin.id }, { subject: 't' }, { schema: 'x' }, { formula: onBond() }, { detection: 999 }, { issued: 11 }, { lastPulse: 21 }, { adjudicator: onBond() as Bond & Formula }]
    const ids = others.map((more) => claimId({ ...statement, ...(more as object) }))
    expect(new Set([claim, ...ids]).size).toBe(1 + others.length)
  })
})

describe('a bond', () => {
  it('takes money from its owner, more of it, and gives it back', () => {
    world.execute(signed(dana, { kind: 'depositBond', label: LABEL, amount: 2_000_000n }))
    const more = world.execute(signed(dana, { kind: 'depositBond', label: LABEL, amount: 500_000n }))
    if (more.kind !== 'executed') throw new Error(more.reason)
    expect(receiptSentence(more, () => 'dana')).toBe('Done: bond delivery of dana holds 2.5 USD; fee 0.0011 USD.')
    expect([bond().amount, world.balance(dana.id)]).toEqual([2_500_000n, 10_000_000n - 2_500_000n - 2_200n])
    const back = world.execute(signed(dana, { kind: 'withdrawBond', label: LABEL, amount: 2_500_000n }))
    if (back.kind !== 'executed') throw new Error(back.reason)
    expect(receiptSentence(back)).toBe('Done: 2.5 USD taken back from the bond delivery, which holds 0 USD; fee 0.0011 USD.')
    expect([bond().amount, world.balance(dana.id)]).toEqual([0n, 10_000_000n - 3_300n])
  })

  it('is held until the last of the claims that rest on it is over, to the Pulse', () => {
    world.execute(signed(dana, { kind: 'depositBond', label: LABEL, amount: 5n }))
    world.execute(signed(dana, claiming({ formula: { kind: 'anyOf', of: [onBond(), onBond()] }, lastPulse: 15 })))
    world.execute(signed(dana, claiming({ formula: onBond(), lastPulse: 12 })))
    const take = { kind: 'withdrawBond', label: LABEL, amount: 5n } as const
    for (const pulse of [10, 15]) {
      expect(world.ask(withdrawBond, take, dana, { pulse })).toEqual({ failed: 'invalid transaction: claims rest on the bond delivery until Pulse 15' })
    }
    expect(world.ask(withdrawBond, take, dana, { pulse: 16 })).not.toHaveProperty('failed')
  })

  it('keeps what is reserved, to the micro-dollar', () => {
    world.put(bondId(dana.id, LABEL), { kind: 'bond', owner: dana.id, label: LABEL, amount: 10n, reserved: 4n, heldUntil: 0 })
    expect(world.ask(withdrawBond, { kind: 'withdrawBond', label: LABEL, amount: 7n }, dana)).toEqual({
      failed: 'invalid transaction: the bond delivery has 0.000006 USD that are not reserved, below 0.000007',
    })
    expect(world.ask(withdrawBond, { kind: 'withdrawBond', label: LABEL, amount: 6n }, dana)).not.toHaveProperty('failed')
  })

  it('is refused where there is nothing to move', () => {
    expect(world.ask(depositBond, { kind: 'depositBond', label: LABEL, amount: 0n }, dana)).toEqual({ failed: 'invalid transaction: a deposit of 0 USD' })
    expect(world.ask(depositBond, { kind: 'depositBond', label: '', amount: 1n }, dana)).toEqual({ failed: 'invalid transaction: a bond without a label' })
    expect(world.ask(depositBond, { kind: 'depositBond', label: LABEL, amount: 10_000_001n }, dana)).toEqual({
      failed: 'insufficient balance: 10 USD after the fee, below the deposit 10.000001',
    })
    expect(world.ask(withdrawBond, { kind: 'withdrawBond', label: LABEL, amount: 1n }, dana)).toEqual({ failed: 'invalid transaction: no bond delivery' })
  })

  it('of one owner is not another’s', () => {
    world.execute(signed(dana, { kind: 'depositBond', label: LABEL, amount: 5n }))
    expect(world.ask(withdrawBond, { kind: 'withdrawBond', label: LABEL, amount: 5n }, erin)).toEqual({ failed: 'invalid transaction: no bond delivery' })
  })
})
