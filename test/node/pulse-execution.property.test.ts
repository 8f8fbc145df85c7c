import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { accountAt, TREASURY } from '../../src/ledger/index.js'
import { StateTree } from '../../src/merkle/index.js'
import { commitmentsOf, executePulse } from '../../src/node/pulse-execution.js'
import { apply, at, holding, moneyIn, pay, signer, unsigned, viewOf, NOTHING_DONE } from './execution-support.js'

const wallets = [signer(1), signer(2), signer(3), signer(4)]

const payment = fc.record({
  from: fc.constantFrom(...wallets),
  to: fc.constantFrom(...wallets.map(({ id }) => id), TREASURY, 'f'.repeat(64)),
  amount: fc.bigInt({ min: 0n, max: 40_000n }),
  nonce: fc.nat({ max: 12 }),
  validUntil: fc.integer({ min: 0, max: 6 }),
})
const pulses = fc.array(fc.array(payment, { maxLength: 8 }), { maxLength: 5 })

describe('whatever is proposed', () => {
  it('money is neither made nor lost, and the treasury has exactly the fees', () => {
    fc.assert(
      fc.property(pulses, (batches) => {
        const state = holding(wallets.map(({ id }, index) => [id, BigInt(index) * 30_000n]))
        const before = moneyIn(state)
        let fees = 0n
        for (const [index, batch] of batches.entries()) {
          const transactions = batch.map(({ from, to, amount, nonce, validUntil }) => unsigned(from, nonce, pay(to, amount), validUntil))
          const effects = executePulse(viewOf(state), { expired: [], transactions }, at(index + 1))
          apply(state, effects.writes)
          for (const { fee } of effects.receipts) fees += fee
          const gifts = effects.receipts.flatMap(({ events }) => events).flatMap((event) => (event.kind === 'Transferred' ? event.outputs : []))
          for (const [account, amount] of gifts) if (account === TREASURY) fees += amount
          expect(effects.receipts.length + effects.inadmissible.length).toBe(transactions.length)
        }
        expect(moneyIn(state)).toBe(before)
        expect(accountAt(viewOf(state), TREASURY)?.balance).toBe(fees)
      }),
    )
  })

  it('two validators that execute it alone get the same roots, also from only what was included', () => {
    fc.assert(
      fc.property(pulses, (batches) => {
        const state = holding(wallets.map(({ id }) => [id, 100_000n]))
        let tree = commitmentsOf(StateTree.empty, { ...NOTHING_DONE, writes: state }).tree
        for (const [index, batch] of batches.entries()) {
          const transactions = batch.map(({ from, to, amount, nonce, validUntil }) => unsigned(from, nonce, pay(to, amount), validUntil))
          const leader = executePulse(viewOf(state), { expired: [], transactions }, at(index + 1))
          const follower = executePulse(viewOf(new Map(state)), { expired: [], transactions: leader.transactions }, at(index + 1))
          const [a, b] = [commitmentsOf(tree, leader), commitmentsOf(tree, follower)]
          expect([b.stateRoot, b.receiptsRoot, b.receipts]).toEqual([a.stateRoot, a.receiptsRoot, a.receipts])
          expect(follower.inadmissible).toEqual([])
          apply(state, leader.writes)
          tree = a.tree
        }
        expect(commitmentsOf(StateTree.empty, { ...NOTHING_DONE, writes: state }).tree.root).toEqual(tree.root)
      }),
    )
  })
})
