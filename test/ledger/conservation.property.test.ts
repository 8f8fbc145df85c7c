import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { MAX_AMOUNT, type Id } from '../../src/codec/index.js'
import { SIZES } from '../../src/crypto/keys.js'
import {
  decodeObject,
  digestOf,
  encodeObject,
  encodeReceipt,
  feeOf,
  DEFAULT_PARAMETERS,
  intentSentence,
  receiptSentence,
  spentNonceId,
  streamId,
  TREASURY,
  type Action,
  type LedgerObject,
  type StreamClaim,
} from '../../src/ledger/index.js'
import type { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { chainOf, jumpTo, opening, streamIdOf, walkTo } from './chains.js'
import { signed, signer, World } from './world.js'

/**
 * Whatever is asked, in whatever order: money is neither made nor lost, no balance leaves its range, a failed transaction
 * changes nothing but fee, nonce and keys, and an inadmissible one nothing at all.
 */

const people = [signer(1), signer(2), signer(3)] as const
const slhDsa = new Uint8Array(SIZES.slhDsaSignature)

let chains: PayerChain[]
beforeAll(async () => {
  chains = [await chainOf(200), await chainOf(200, 'twin'), await chainOf(63, 'short')]
})

/** Money in accounts and bonds, and what open streams still hold. */
function moneyIn(state: ReadonlyMap<Id, LedgerObject>): bigint {
  let sum = 0n
  for (const object of state.values()) {
    if (object.kind === 'account') sum += object.balance
    if (object.kind === 'bond') sum += object.amount
    if (object.kind === 'stream' && !object.closed) sum += object.escrow - BigInt(object.settled) * object.stepValue
  }
  return sum
}

function expectSound(written: Iterable<LedgerObject | null>): void {
  for (const object of written) {
    if (object === null) throw new Error('nothing deletes an object')
    // Canonical bytes hold what is in range and nothing else.
    const bytes = encodeObject(object)
    expect(Buffer.compare(encodeObject(decodeObject(bytes)), bytes)).toBe(0)
    if (object.kind === 'account') expect(object.balance >= 0n && object.balance <= MAX_AMOUNT).toBe(true)
    if (object.kind !== 'stream') continue
    expect(object.settled).toBeLessThanOrEqual(object.length)
    expect(BigInt(object.settled) * object.stepValue).toBeLessThanOrEqual(object.escrow)
    expect(object.escrow).toBeLessThanOrEqual(BigInt(object.length) * object.stepValue)
  }
}

/** What to do next, in numbers that are given a meaning by the state they meet. */
const move = fc.record({
  who: fc.nat(2),
  what: fc.oneof(
    { weight: 1, arbitrary: fc.constantFrom<Action['kind'][]>('setDual', 'closeStream') },
    { weight: 4, arbitrary: fc.constantFrom<Action['kind'][]>('transfer', 'openStream', 'topUpStream', 'settleStreams') },
    { weight: 2, arbitrary: fc.constantFrom<Action['kind'][]>('depositBond', 'withdrawBond', 'issueClaim') },
  ),
  whom: fc.nat(4),
  chain: fc.nat(2),
  streams: fc.array(fc.nat(8), { minLength: 1, maxLength: 3 }),
  amount: fc.oneof(fc.bigInt(0n, 200_000n), fc.bigInt(1n, 20_000n), fc.constantFrom(MAX_AMOUNT, 0n, 1n, 100_000n)),
  pulses: fc.oneof(fc.integer({ min: -2, max: 30 }), fc.constantFrom(0, 40)),
  position: fc.oneof(fc.nat(210), fc.nat(20)),
  offset: fc.constantFrom(0, 0, 0, 0, 1),
  jump: fc.boolean(),
  both: fc.constantFrom(true, true, true, false),
  wait: fc.constantFrom(0, 0, 0, 1, 5),
})
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never

/** A world with the streams that were opened in it, and over which chain. */
interface Play {
  readonly world: World
  readonly opened: { readonly id: Id; readonly chain: PayerChain }[]
}

const BOND = 'delivery'

function actionOf({ what, who, whom, chain: which, streams, amount, pulses, position, offset, jump }: Move, { world, opened }: Play): Action {
  const chain = chains[which]!
  const one = opened[(streams[0] ?? 0) % Math.max(1, opened.length)]
  const to = whom < people.length ? people[whom]!.id : whom === 3 ? TREASURY : (one?.id ?? streamIdOf('none'))
  const stream = one?.id ?? streamIdOf('none')
  switch (what) {
    case 'transfer':
      return { kind: 'transfer', to, amount, purpose: 'x402:00' }
    case 'setDual':
      return { kind: 'setDual', dual: offset === 1 }
    case 'openStream':
      return opening(chain, to, { escrow: amount, stepValue: 1_000n, lastPulse: Math.max(0, world.pulse + pulses) })
    case 'topUpStream': {
      const before = world.state.get(stream)
      const last = before?.kind === 'stream' ? before.lastPulse : world.pulse
      return { kind: 'topUpStream', stream, amount, lastPulse: Math.max(0, last + pulses) }
    }
    case 'closeStream':
      return { kind: 'closeStream', stream }
    case 'depositBond':
    case 'withdrawBond':
      return { kind: what, label: BOND, amount }
    case 'issueClaim':
      return {
        kind: 'issueClaim',
        subject: 'as agreed',
        schema: 'note/v1',
        formula: { kind: 'bond', owner: people[who]!.id, label: BOND },
        detection: 1_000,
        lastPulse: Math.max(0, world.pulse + pulses),
      }
    case 'settleStreams':
      return { kind: 'settleStreams', claims: streams.map((at) => claimOn(opened[at % Math.max(2, opened.length)], position, offset, jump)) }
  }
}

/** Mostly a good element, sometimes that of the next position. */
function claimOn(opened: Play['opened'][number] | undefined, position: number, offset: number, jump: boolean): StreamClaim {
  if (opened === undefined) return walkTo(chains[0]!, streamIdOf('none'), 1)
  const { id, chain } = opened
  const at = Math.min(chain.length - 1, Math.max(1, position))
  const made = jump && at >= 64 ? jumpTo(chain, id, at) : walkTo(chain, id, at)
  return { ...made, position: position > chain.length ? position : at, element: chain.reveal(at + offset) }
}

function play(moves: readonly Move[]): Map<string, number> {
  const world = new World()
  for (const { id } of people) world.give(id, 1_000_000n)
  const game: Play = { world, opened: [] }
  const met = new Map<string, number>()
  const total = moneyIn(world.state)
  for (const next of moves) {
    world.pulse += next.wait
    const from = people[next.who]!
    const action = actionOf(next, game)
    const tx = { ...signed(from, action, { validUntil: world.pulse }), ...(next.both ? { slhDsa } : {}) }
    const before = new Map(world.state)
    const result = world.execute(tx)
    const name = result.kind === 'executed' ? `${action.kind} ${result.outcome.kind}` : result.code
    met.set(name, (met.get(name) ?? 0) + 1)

    expect(moneyIn(world.state)).toBe(total)
    if (result.kind === 'inadmissible') {
      expect(isDeepStrictEqual(world.state, before)).toBe(true)
      continue
    }
    expectSound(result.writes.values())
    const fee = feeOf(action, DEFAULT_PARAMETERS)
    expect(result.fee).toBe(fee)
    encodeReceipt({ ...result, index: 0, pulse: world.pulse })
    expect(receiptSentence(result)).toMatch(/^(Done: .|Failed \(.).*\.$/)
    expect(intentSentence(tx.body, DEFAULT_PARAMETERS)).toMatch(/\. Fee 0\.\d+ USD; valid until Pulse \d+\.$/)
    if (result.outcome.kind === 'success') {
      if (action.kind === 'openStream') game.opened.push({ id: streamId(digestOf(tx.body)), chain: chains[next.chain]! })
      continue
    }
    const account = before.get(from.id)
    const treasury = before.get(TREASURY)
    if (account?.kind !== 'account') throw new Error('only accounts execute')
    before.set(from.id, { ...account, balance: account.balance - fee, keys: from.keys })
    before.set(TREASURY, { kind: 'account', dual: false, balance: (treasury?.kind === 'account' ? treasury.balance : 0n) + fee })
    before.set(spentNonceId(from.id, tx.body.nonce), { kind: 'spentNonce', validUntil: tx.body.validUntil })
    if (!isDeepStrictEqual(world.state, before)) expect(world.state).toEqual(before)
  }
  return met
}

describe('any sequence of transactions', () => {
  it('keeps the money, the ranges and everything that a failure must not touch', () => {
    const met = new Map<string, number>()
    fc.assert(
      fc.property(fc.array(move, { minLength: 10, maxLength: 40, size: 'max' }), (moves) => {
        for (const [name, times] of play(moves)) met.set(name, (met.get(name) ?? 0) + times)
      }),
      { numRuns: 120 },
    )
    const actions: Action['kind'][] = ['transfer', 'openStream', 'topUpStream', 'settleStreams', 'closeStream', 'depositBond', 'withdrawBond', 'issueClaim']
    const outcomes = actions.flatMap((kind) => [`${kind} success`, `${kind} failed`])
    // Each happened and each failed, or the moves test nothing.
    for (const name of [...outcomes, 'setDual success', 'missing_signature']) expect(met.get(name) ?? 0, name).toBeGreaterThan(0)
  })

  it('ends with every open stream closed and all money in accounts, once the payers close them', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(200), { minLength: 1, maxLength: 5 }), (positions) => {
        const world = new World()
        for (const { id } of people) world.give(id, 1_000_000n)
        const [payer, payee, other] = people
        const open = signed(payer, opening(chains[0]!, payee.id, { lastPulse: 15 }))
        const id = streamId(digestOf(open.body))
        world.execute(open)
        for (const position of positions) world.execute(signed(other, { kind: 'settleStreams', claims: [walkTo(chains[0]!, id, Math.max(1, position))] }))
        world.pulse = 16
        expect(world.execute(signed(payer, { kind: 'closeStream', stream: id }))).toMatchObject({ outcome: { kind: 'success' } })
        const paid = BigInt(Math.max(1, ...positions)) * 1_000n
        expect(world.balance(payee.id)).toBe(1_000_000n + paid)
        expect(world.balance(payer.id)).toBe(1_000_000n - 1_200n - 1_100n - paid)
        expect([...people.map((one) => one.id), TREASURY].reduce((sum, one) => sum + world.balance(one), 0n)).toBe(3_000_000n)
      }),
      { numRuns: 30 },
    )
  })
})
