import { describe, expect, it } from 'vitest'
import { accountAt, spentNonceId, TREASURY } from '../../src/ledger/index.js'
import { StateTree } from '../../src/merkle/index.js'
import { commitmentsOf, executePulse } from '../../src/node/pulse-execution.js'
import { apply, at, holding, pay, signer, unsigned, viewOf, NOTHING_DONE } from './execution-support.js'

const alice = signer(1)
const bob = signer(2)

describe('executing a Pulse', () => {
  it('takes the amount and the fee to the micro-USD, and pays the fee to the treasury', () => {
    const state = holding([[alice.id, 1_000_000n]])
    const effects = executePulse(viewOf(state), { expired: [], transactions: [unsigned(alice, 1, pay(bob.id, 250_000n))] }, at(1))
    apply(state, effects.writes)
    expect(accountAt(viewOf(state), alice.id)?.balance).toBe(1_000_000n - 250_000n - 1_100n)
    expect(accountAt(viewOf(state), bob.id)?.balance).toBe(250_000n)
    expect(accountAt(viewOf(state), TREASURY)?.balance).toBe(1_100n)
    expect(effects.receipts).toMatchObject([{ index: 0, pulse: 1, fee: 1_100n, outcome: { kind: 'success' } }])
  })

  it('lets a payment spend exactly what is left, and fails one micro-USD more for its fee alone', () => {
    for (const [extra, outcome] of [[0n, 'success'], [1n, 'failed']] as const) {
      const state = holding([[alice.id, 1_000n + 1_100n]])
      const effects = executePulse(viewOf(state), { expired: [], transactions: [unsigned(alice, 1, pay(bob.id, 1_000n + extra))] }, at(1))
      apply(state, effects.writes)
      expect(effects.receipts[0]?.outcome.kind).toBe(outcome)
      expect(accountAt(viewOf(state), alice.id)?.balance).toBe(outcome === 'success' ? 0n : 1_000n)
    }
  })

  it('executes a transaction once, though a batch holds it twice', () => {
    const tx = unsigned(alice, 1, pay(bob.id, 10n))
    const state = holding([[alice.id, 1_000_000n]])
    const effects = executePulse(viewOf(state), { expired: [], transactions: [tx, tx] }, at(1))
    expect(effects.receipts).toHaveLength(1)
    expect(effects.transactions).toEqual([tx])
    expect(effects.inadmissible).toMatchObject([{ refusal: { code: 'replayed' } }])
  })

  it('refuses in a later Pulse what executed in an earlier one, under another body too', () => {
    const state = holding([[alice.id, 1_000_000n]])
    apply(state, executePulse(viewOf(state), { expired: [], transactions: [unsigned(alice, 1, pay(bob.id, 10n))] }, at(1)).writes)
    for (const amount of [10n, 11n]) {
      const again = executePulse(viewOf(state), { expired: [], transactions: [unsigned(alice, 1, pay(bob.id, amount))] }, at(2))
      expect(again.inadmissible).toMatchObject([{ refusal: { code: 'replayed' } }])
    }
  })

  it('executes a transaction in the last Pulse it is valid for, and not in the one after', () => {
    const state = holding([[alice.id, 1_000_000n]])
    const work = { expired: [], transactions: [unsigned(alice, 1, pay(bob.id, 10n), 7)] }
    expect(executePulse(viewOf(state), work, at(7)).receipts).toHaveLength(1)
    expect(executePulse(viewOf(state), work, at(8)).inadmissible).toMatchObject([{ refusal: { code: 'expired' } }])
  })

  it('takes at most 1,000 Pulses of validity', () => {
    const state = holding([[alice.id, 1_000_000n]])
    const until = (pulse: number) => ({ expired: [], transactions: [unsigned(alice, 1, pay(bob.id, 10n), pulse)] })
    expect(executePulse(viewOf(state), until(1_005), at(5)).receipts).toHaveLength(1)
    expect(executePulse(viewOf(state), until(1_006), at(5)).inadmissible).toMatchObject([{ refusal: { code: 'valid_too_long' } }])
  })

  it('deletes what expired, and the root is that of a state which never had it', () => {
    const spent = spentNonceId(alice.id, '0'.repeat(32))
    const kept = holding([[alice.id, 5n]])
    const without = commitmentsOf(StateTree.empty, { ...NOTHING_DONE, writes: kept }).tree
    const withIt = commitmentsOf(without, { ...NOTHING_DONE, writes: new Map([[spent, { kind: 'spentNonce', validUntil: 3 }]]) }).tree
    const effects = executePulse(viewOf(kept), { expired: [spent], transactions: [] }, at(4))
    expect(withIt.root).not.toEqual(without.root)
    expect(commitmentsOf(withIt, effects).tree.root).toEqual(without.root)
  })

  it('gives each transaction the state that those before it left, so that order matters', () => {
    const state = holding([[alice.id, 10_000n]])
    const toBob = unsigned(alice, 1, pay(bob.id, 5_000n))
    const onward = unsigned(bob, 2, pay(alice.id, 1_000n))
    expect(executePulse(viewOf(state), { expired: [], transactions: [toBob, onward] }, at(1)).receipts).toHaveLength(2)
    expect(executePulse(viewOf(state), { expired: [], transactions: [onward, toBob] }, at(1)).inadmissible).toMatchObject([
      { refusal: { code: 'insufficient_fee' } },
    ])
  })
})
