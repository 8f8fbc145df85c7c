import { beforeAll, describe, expect, it } from 'vitest'
import { shortId } from '../../src/codec/index.js'
import { SIZES } from '../../src/crypto/keys.js'
import {
  admissible,
  DEFAULT_PARAMETERS,
  digestOf,
  feeOf,
  keysToCheck,
  MAX_VALIDITY_PULSES,
  overlay,
  spendOf,
  spentNonceId,
  streamId,
  TREASURY,
  type Action,
  type LedgerObject,
} from '../../src/ledger/index.js'
import type { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { CHAIN, signed, signer, World } from './world.js'
import { chainOf, opening, streamIdOf, streamOver, walkTo } from './chains.js'

const alice = signer(1)
const bob = signer(2)
const pay = (amount: bigint): Action => ({ kind: 'transfer', to: bob.id, amount, purpose: '' })
const slhDsa = new Uint8Array(SIZES.slhDsaSignature)

let chain: PayerChain
beforeAll(async () => {
  chain = await chainOf(100)
})

describe('what may enter a Pulse', () => {
  const world = (): World => new World().give(alice.id, 1_000_000n)
  const check = (tx: ReturnType<typeof signed>, at = world()) => admissible(at.state, tx, at.context)

  it('is a transaction for this chain', () => {
    expect(check(signed(alice, pay(1n)))).toBeUndefined()
    const other = 'ab'.repeat(32)
    expect(check(signed(alice, pay(1n), { chain: other }))).toEqual({
      kind: 'inadmissible',
      code: 'wrong_chain',
      reason: `the transaction is for chain abababab, this is ${shortId(CHAIN)}`,
    })
    expect(check(signed(alice, pay(1n), { chain: CHAIN.replace(/.$/, CHAIN.endsWith('0') ? '1' : '0') }))).toMatchObject({ code: 'wrong_chain' })
  })

  it('is valid until this Pulse or a later one, at most 1,000 later', () => {
    for (const validUntil of [10, 11, 10 + MAX_VALIDITY_PULSES]) expect(check(signed(alice, pay(1n), { validUntil }))).toBeUndefined()
    expect(check(signed(alice, pay(1n), { validUntil: 9 }))).toEqual({
      kind: 'inadmissible',
      code: 'expired',
      reason: 'the transaction was valid until Pulse 9, this is Pulse 10',
    })
    expect(check(signed(alice, pay(1n), { validUntil: 1_011 }))).toEqual({
      kind: 'inadmissible',
      code: 'valid_too_long',
      reason: 'valid until Pulse 1011, more than 1000 Pulses ahead of 10',
    })
    expect(check(signed(alice, pay(1n), { validUntil: 0 }))).toMatchObject({ code: 'expired' })
    expect(check(signed(alice, pay(1n), { validUntil: Number.MAX_SAFE_INTEGER }))).toMatchObject({ code: 'valid_too_long' })
  })

  it('is no second transaction under a signer’s nonce, whatever it asks', () => {
    const nonce = 'ab'.repeat(16)
    const used = world().give(bob.id, 1_000_000n).put(spentNonceId(alice.id, nonce), { kind: 'spentNonce', validUntil: 20 })
    for (const action of [pay(1n), pay(2n), { kind: 'setDual', dual: true } as const]) {
      expect(check(signed(alice, action, { nonce }), used)).toEqual({
        kind: 'inadmissible',
        code: 'replayed',
        reason: 'the transaction was executed before: its nonce is used up',
      })
    }
    expect(check(signed(bob, pay(1n), { nonce }), used)).toBeUndefined()
    expect(check(signed(alice, pay(1n), { nonce: 'ab'.repeat(15) + 'ac' }), used)).toBeUndefined()
  })

  it('brings its keys as long as the ledger does not know them', () => {
    const { keys: _, ...bare } = signed(alice, pay(1n))
    expect(check(bare)).toEqual({ kind: 'inadmissible', code: 'unknown_keys', reason: 'the ledger does not know the signer’s keys yet: send them along' })
    const known = new World().give(alice.id, 1_000_000n, { keys: alice.keys })
    expect(check(bare, known)).toBeUndefined()
    expect(check(signed(alice, pay(1n)), known)).toBeUndefined()
  })

  it('brings no keys but those that derive the signer', () => {
    const refusal = { kind: 'inadmissible', code: 'wrong_keys', reason: 'the keys sent along are not those of the signer' }
    const swapped = [bob.keys, { ...alice.keys, slhDsa: bob.keys.slhDsa }, { ...alice.keys, mlDsa: bob.keys.mlDsa }]
    const known = new World().give(alice.id, 1_000_000n, { keys: alice.keys })
    for (const keys of swapped) {
      expect(check({ ...signed(alice, pay(1n)), keys })).toEqual(refusal)
      expect(check({ ...signed(alice, pay(1n)), keys }, known)).toEqual(refusal)
    }
  })

  it('has both signatures where the account asks for both', () => {
    const dual = new World().give(alice.id, 1_000_000n, { dual: true, keys: alice.keys })
    expect(check(signed(alice, pay(1n)), dual)).toEqual({
      kind: 'inadmissible',
      code: 'missing_signature',
      reason: 'the signer’s account is dual: an SLH-DSA-SHA2-128f signature is needed too',
    })
    expect(check({ ...signed(alice, pay(1n)), slhDsa }, dual)).toBeUndefined()
    expect(check(signed(alice, { kind: 'setDual', dual: false }), dual)).toMatchObject({ code: 'missing_signature' })
  })

  it('can pay its fee, to the micro-USD, and need not be able to pay more', () => {
    const having = (balance: bigint): World => new World().give(alice.id, balance)
    expect(check(signed(alice, pay(1_000_000n)), having(1_100n))).toBeUndefined()
    expect(check(signed(alice, pay(1n)), having(1_099n))).toEqual({
      kind: 'inadmissible',
      code: 'insufficient_fee',
      reason: 'insufficient balance: 0.001099 USD, below the fee of 0.0011 USD',
    })
    expect(check(signed(alice, pay(1n)), new World())).toMatchObject({ code: 'insufficient_fee' })
  })

  it('is signed by an account', () => {
    const id = streamIdOf('one')
    const at = world().put(id, streamOver(chain, alice.id, bob.id))
    expect(check(signed({ ...alice, id }, pay(1n)), at)).toEqual({ kind: 'inadmissible', code: 'unknown_keys', reason: `${shortId(id)} is not an account` })
  })

  it('is checked against the recorded keys, and against those sent along only before there are any', () => {
    const at = world()
    const tx = signed(alice, pay(1n))
    const { keys: _, ...bare } = tx
    expect(keysToCheck(at.state, tx)).toBe(alice.keys)
    expect(keysToCheck(at.state, bare)).toBeUndefined()
    const recorded = signer(9).keys
    const known = new World().give(alice.id, 5n, { keys: recorded })
    expect(keysToCheck(known.state, tx)).toBe(recorded)
  })
})

describe('what a transaction costs', () => {
  const id = streamIdOf('one')
  const settling = (streams: number): Action => ({
    kind: 'settleStreams',
    claims: Array.from({ length: streams }, (_, at) => walkTo(chain, streamIdOf(`s${at}`), 1)),
  })

  it.each<[string, () => Action, bigint, bigint]>([
    ['a payment', () => pay(500n), 1_100n, 1_600n],
    ['asking for both signatures', () => ({ kind: 'setDual', dual: true }), 1_000n, 1_000n],
    ['opening a stream', () => opening(chain, bob.id), 1_200n, 101_200n],
    ['topping one up', () => ({ kind: 'topUpStream', stream: id, amount: 5n, lastPulse: 200 }), 1_100n, 1_105n],
    ['settling none', () => settling(0), 1_000n, 1_000n],
    ['settling one', () => settling(1), 1_100n, 1_100n],
    ['settling ten', () => settling(10), 2_000n, 2_000n],
    ['settling 256', () => settling(256), 26_600n, 26_600n],
    ['closing one', () => ({ kind: 'closeStream', stream: id }), 1_100n, 1_100n],
  ])('for %s is exact, and so is what it can spend at most', (_, action, fee, spend) => {
    expect(feeOf(action(), DEFAULT_PARAMETERS)).toBe(fee)
    expect(spendOf(action(), DEFAULT_PARAMETERS)).toBe(spend)
  })

  it('follows the chain’s parameters', () => {
    const parameters = { feeBase: 1n, feeTouched: 20n, feeCreated: 300n }
    expect(feeOf({ kind: 'setDual', dual: true }, parameters)).toBe(1n)
    expect(feeOf(pay(1n), parameters)).toBe(21n)
    expect(feeOf(opening(chain, bob.id), parameters)).toBe(321n)
    expect(feeOf(settling(3), parameters)).toBe(61n)
  })
})

describe('executing', () => {
  it('charges the fee, records keys and nonce, and then does what was asked', () => {
    const world = new World().give(alice.id, 1_000_000n).give(TREASURY, 5n)
    const tx = signed(alice, pay(250_000n))
    const before = new Map(world.state)
    const result = world.execute(tx)
    expect(result).toMatchObject({ kind: 'executed', digest: digestOf(tx.body), fee: 1_100n, outcome: { kind: 'success' } })
    expect(before.get(alice.id)).toMatchObject({ balance: 1_000_000n })
    expect(Object.fromEntries(world.state)).toEqual({
      [alice.id]: { kind: 'account', balance: 748_900n, dual: false, keys: alice.keys },
      [bob.id]: { kind: 'account', balance: 250_000n, dual: false },
      [TREASURY]: { kind: 'account', balance: 1_105n, dual: false },
      [spentNonceId(alice.id, tx.body.nonce)]: { kind: 'spentNonce', validUntil: 20 },
    })
  })

  it('of what fails changes fee, nonce and keys and nothing else', () => {
    const failing: Action[] = [
      pay(0n),
      pay(1_000_000n),
      { kind: 'transfer', to: alice.id, amount: 1n, purpose: '' },
      opening(chain, alice.id),
      opening(chain, bob.id, { escrow: 99_999_999n, stepValue: 10_000_000n }),
      { kind: 'topUpStream', stream: streamIdOf('none'), amount: 1n, lastPulse: 99 },
      { kind: 'settleStreams', claims: [] },
      { kind: 'settleStreams', claims: [walkTo(chain, streamIdOf('none'), 1)] },
      { kind: 'closeStream', stream: streamIdOf('none') },
    ]
    for (const action of failing) {
      const world = new World().give(alice.id, 1_000_000n)
      const tx = signed(alice, action)
      const result = world.execute(tx)
      const fee = feeOf(action, DEFAULT_PARAMETERS)
      expect(result).toMatchObject({ kind: 'executed', fee, outcome: { kind: 'failed', reason: expect.stringMatching(/./) }, events: [] })
      expect(Object.fromEntries(world.state)).toEqual({
        [alice.id]: { kind: 'account', balance: 1_000_000n - fee, dual: false, keys: alice.keys },
        [TREASURY]: { kind: 'account', balance: fee, dual: false },
        [spentNonceId(alice.id, tx.body.nonce)]: { kind: 'spentNonce', validUntil: 20 },
      })
    }
  })

  it('of what is inadmissible changes nothing', () => {
    const world = new World().give(alice.id, 1_000n)
    const before = new Map(world.state)
    expect(world.execute(signed(alice, pay(1n)))).toMatchObject({ kind: 'inadmissible', code: 'insufficient_fee' })
    expect(world.state).toEqual(before)
  })

  it('happens once to a transaction, and fails again only as a replay', () => {
    const world = new World().give(alice.id, 1_000_000n)
    for (const tx of [signed(alice, pay(1n)), signed(alice, pay(0n))]) {
      expect(world.execute(tx).kind).toBe('executed')
      const balance = world.balance(alice.id)
      expect(world.execute(tx)).toMatchObject({ kind: 'inadmissible', code: 'replayed' })
      expect(world.balance(alice.id)).toBe(balance)
    }
  })

  it('takes the fee first: what is left decides whether the rest succeeds', () => {
    for (const [amount, outcome] of [[8_900n, 'success'], [8_901n, 'failed']] as const) {
      const world = new World().give(alice.id, 10_000n)
      expect(world.execute(signed(alice, pay(amount)))).toMatchObject({ outcome: { kind: outcome } })
      expect(world.balance(alice.id)).toBe(outcome === 'success' ? 0n : 8_900n)
    }
  })

  it('opens, tops up, settles and closes a stream, each at its own price', () => {
    const world = new World().give(alice.id, 1_000_000n, { keys: alice.keys }).give(bob.id, 10_000n, { keys: bob.keys })
    const open = signed(alice, opening(chain, bob.id, { escrow: 50_000n, lastPulse: 30 }))
    const id = streamId(digestOf(open.body))
    const steps = [
      open,
      signed(alice, { kind: 'topUpStream', stream: id, amount: 30_000n, lastPulse: 40 }),
      signed(bob, { kind: 'settleStreams', claims: [walkTo(chain, id, 70)] }),
      signed(bob, { kind: 'closeStream', stream: id }),
    ]
    const results = steps.map((tx) => world.execute(tx))
    expect(results).toMatchObject([1_200n, 1_100n, 1_100n, 1_100n].map((fee) => ({ fee, outcome: { kind: 'success' } })))
    expect(world.balance(alice.id)).toBe(1_000_000n - 1_200n - 1_100n - 70_000n)
    expect(world.balance(bob.id)).toBe(10_000n - 2_200n + 70_000n)
    expect(world.balance(TREASURY)).toBe(4_500n)
    expect(world.stream(id)).toMatchObject({ closed: true, settled: 70, escrow: 80_000n })
  })

  it('makes an account dual from the next transaction on', () => {
    const world = new World().give(alice.id, 1_000_000n)
    expect(world.execute(signed(alice, { kind: 'setDual', dual: true }))).toMatchObject({ fee: 1_000n, outcome: { kind: 'success' } })
    expect(world.execute(signed(alice, pay(1n)))).toMatchObject({ code: 'missing_signature' })
    expect(world.execute({ ...signed(alice, { kind: 'setDual', dual: false }), slhDsa })).toMatchObject({ outcome: { kind: 'success' } })
    expect(world.execute(signed(alice, pay(1n)))).toMatchObject({ outcome: { kind: 'success' } })
  })
})

describe('writes over a state', () => {
  it('hide what is under them, deletions included, and follow later writes', () => {
    const account = (balance: bigint): LedgerObject => ({ kind: 'account', balance, dual: false })
    const base = new Map([['a', account(1n)], ['b', account(2n)]])
    const writes = new Map<string, LedgerObject | null>([['a', account(3n)], ['b', null]])
    const view = overlay(base, writes)
    expect([view.get('a'), view.get('b'), view.get('c')]).toEqual([account(3n), undefined, undefined])
    writes.set('c', account(4n))
    expect(view.get('c')).toEqual(account(4n))
    expect(base.get('a')).toEqual(account(1n))
  })
})
