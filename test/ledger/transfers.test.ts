import { describe, expect, it } from 'vitest'
import { MAX_AMOUNT, shortId } from '../../src/codec/index.js'
import { EMPTY_ACCOUNT, spentNonceId, TREASURY, USD, type Transfer } from '../../src/ledger/index.js'
import { setDual, transfer } from '../../src/ledger/rules/transfers.js'
import { streamOver, chainOf, streamIdOf } from './chains.js'
import { effectsOf, failureOf, signer, World } from './world.js'

const alice = signer(1)
const bob = signer(2)
const stream = streamIdOf('one')
const paying = (amount: bigint, to = bob.id): Transfer => ({ kind: 'transfer', to, amount, purpose: '' })

async function worldWithStream(): Promise<World> {
  return new World().give(alice.id, 1_000n).put(stream, streamOver(await chainOf(10), alice.id, bob.id))
}

describe('a transfer', () => {
  it('takes the amount from one account and gives it to the other, and says so', () => {
    const world = new World().give(alice.id, 1_000n).give(bob.id, 5n)
    const { writes, events } = effectsOf(world.ask(transfer, paying(400n), alice))
    expect(Object.fromEntries(writes)).toEqual({
      [alice.id]: { ...EMPTY_ACCOUNT, balance: 600n },
      [bob.id]: { ...EMPTY_ACCOUNT, balance: 405n },
    })
    expect(events).toEqual([{ kind: 'Transferred', asset: USD, outputs: [[bob.id, 400n]] }])
  })

  it('makes the account of whoever was never paid, and leaves keys and dual as they are', () => {
    const world = new World().give(alice.id, 1_000n, { keys: alice.keys, dual: true })
    const { writes } = effectsOf(world.ask(transfer, paying(1n), alice))
    expect(writes.get(bob.id)).toEqual({ kind: 'account', balance: 1n, dual: false })
    expect(writes.get(alice.id)).toEqual({ kind: 'account', balance: 999n, dual: true, keys: alice.keys })
  })

  it('can spend the last micro-USD, and not one more', () => {
    const world = new World().give(alice.id, 1_000n)
    expect(effectsOf(world.ask(transfer, paying(1_000n), alice)).writes.get(alice.id)).toMatchObject({ balance: 0n })
    expect(failureOf(world.ask(transfer, paying(1_001n), alice))).toBe(
      'insufficient balance: 0.001 USD after the fee, below the payment 0.001001',
    )
  })

  it('of nothing and to oneself are invalid', () => {
    const world = new World().give(alice.id, 1_000n)
    expect(failureOf(world.ask(transfer, paying(0n), alice))).toBe('invalid transaction: a payment of 0 USD')
    expect(failureOf(world.ask(transfer, paying(1n, alice.id), alice))).toBe('invalid transaction: a payment to oneself')
  })

  it('goes to accounts only, and comes from accounts only', async () => {
    const world = await worldWithStream()
    world.put(spentNonceId(bob.id, '00'.repeat(16)), { kind: 'spentNonce', validUntil: 9 })
    for (const id of [stream, spentNonceId(bob.id, '00'.repeat(16))]) {
      expect(failureOf(world.ask(transfer, paying(1n, id), alice))).toBe(`invalid transaction: ${shortId(id)} is not an account`)
      expect(failureOf(world.ask(transfer, paying(1n), { ...alice, id }))).toBe(`unauthorized: ${shortId(id)} is not an account`)
    }
  })

  it('fills the payee up to the largest amount, and not past it', () => {
    const world = new World().give(alice.id, 1_000n).give(bob.id, MAX_AMOUNT - 400n)
    expect(effectsOf(world.ask(transfer, paying(400n), alice)).writes.get(bob.id)).toMatchObject({ balance: MAX_AMOUNT })
    expect(failureOf(world.ask(transfer, paying(401n), alice))).toBe('invalid transaction: the payee would hold too much')
  })

  it('to the treasury adds to what fees brought it', () => {
    const world = new World().give(alice.id, 1_000n).give(TREASURY, 7n)
    expect(effectsOf(world.ask(transfer, paying(3n, TREASURY), alice)).writes.get(TREASURY)).toMatchObject({ balance: 10n })
  })

  it('only reads the state', () => {
    const world = new World().give(alice.id, 1_000n)
    const before = new Map(world.state)
    world.ask(transfer, paying(400n), alice)
    world.ask(transfer, paying(4_000n), alice)
    expect(world.state).toEqual(before)
  })
})

describe('asking for both signatures', () => {
  it.each([true, false])('sets the account’s dual to %s and nothing else', (dual) => {
    const world = new World().give(alice.id, 5n, { dual: !dual, keys: alice.keys })
    const { writes, events } = effectsOf(world.ask(setDual, { kind: 'setDual', dual }, alice))
    expect(Object.fromEntries(writes)).toEqual({ [alice.id]: { kind: 'account', balance: 5n, dual, keys: alice.keys } })
    expect(events).toEqual([{ kind: 'DualSet', account: alice.id, dual }])
  })

  it('is for accounts only', async () => {
    const world = await worldWithStream()
    expect(failureOf(world.ask(setDual, { kind: 'setDual', dual: true }, { ...alice, id: stream }))).toBe(
      `unauthorized: ${shortId(stream)} is not an account`,
    )
  })
})
