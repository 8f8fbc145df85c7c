import { beforeAll, describe, expect, it } from 'vitest'
import { MAX_AMOUNT, shortId, toHex } from '../../src/codec/index.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { EMPTY_ACCOUNT, MAX_STREAM_PULSES, streamId, type OpenStream, type Stream, type TopUpStream } from '../../src/ledger/index.js'
import { openStream, topUpStream } from '../../src/ledger/rules/streams.js'
import { EMPTY_LOG_ROOT } from '../../src/merkle/index.js'
import type { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { chainOf, opening, streamIdOf, streamOver } from './chains.js'
import { effectsOf, failureOf, signer, World } from './world.js'

const payer = signer(1)
const payee = signer(2)
const other = signer(3)
const digest = toHex(taggedHash('test/digest'))
const opened = streamId(digest)

let chain: PayerChain
let short: PayerChain
beforeAll(async () => {
  chain = await chainOf(100)
  short = await chainOf(63, 'short')
})

describe('opening a stream', () => {
  const rich = (): World => new World().give(payer.id, MAX_AMOUNT)
  const open = (terms: Partial<OpenStream> = {}, world = rich()) => world.ask(openStream, opening(chain, payee.id, terms), payer, { digest })

  it('moves the escrow from the payer into a stream named by the transaction', () => {
    const world = new World().give(payer.id, 100_000n, { keys: payer.keys })
    const { writes, events } = effectsOf(open({ escrow: 99_000n }, world))
    expect([...writes.keys()]).toEqual([payer.id, opened])
    expect(writes.get(payer.id)).toEqual({ ...EMPTY_ACCOUNT, balance: 1_000n, keys: payer.keys })
    expect(writes.get(opened)).toEqual({
      kind: 'stream',
      payer: payer.id,
      payee: payee.id,
      anchor: chain.anchor,
      salt: chain.salt,
      checkpointRoot: chain.checkpointRoot,
      length: 100,
      stepValue: 1_000n,
      escrow: 99_000n,
      settled: 0,
      settledElement: chain.anchor,
      lastPulse: 100,
      closed: false,
    })
    expect(events).toEqual([{ kind: 'StreamOpened', stream: opened, payer: payer.id, payee: payee.id, escrow: 99_000n, lastPulse: 100 }])
  })

  it.each<[string, Partial<OpenStream>, string]>([
    ['to oneself', { payee: payer.id }, 'invalid transaction: a stream to oneself'],
    ['over no elements', { length: 0, escrow: 1n }, 'invalid transaction: a chain of no elements'],
    ['with steps of nothing', { stepValue: 0n, escrow: 1n }, 'invalid transaction: steps of 0 USD'],
    ['with no escrow', { escrow: 0n }, 'invalid transaction: an escrow of 0 USD'],
    ['with more than the chain can pay', { escrow: 100_001n }, 'invalid transaction: an escrow of 0.100001 USD for a chain that pays 0.1 USD at most'],
    ['that has ended', { lastPulse: 9 }, 'invalid transaction: a last Pulse of 9, which is not ahead of 10'],
    ['that ends now', { lastPulse: 10 }, 'invalid transaction: a last Pulse of 10, which is not ahead of 10'],
    ['that ends too far ahead', { lastPulse: 10 + MAX_STREAM_PULSES + 1 }, 'invalid transaction: a last Pulse more than 10000000 Pulses ahead'],
    ['that hardly ends', { lastPulse: Number.MAX_SAFE_INTEGER }, 'invalid transaction: a last Pulse more than 10000000 Pulses ahead'],
  ])('%s is invalid', (_, terms, sentence) => {
    expect(failureOf(open(terms))).toBe(sentence)
  })

  it.each<[string, Partial<OpenStream>]>([
    ['the next Pulse', { lastPulse: 11 }],
    ['the latest end allowed', { lastPulse: 10 + MAX_STREAM_PULSES }],
    ['an escrow of one micro-USD, less than a step', { escrow: 1n }],
    ['an escrow of all that the chain can pay', { escrow: 100_000n }],
    ['a chain as long as there are positions', { length: 2 ** 32 - 1, stepValue: 1n, escrow: 2n ** 32n - 1n }],
    ['the largest step and amount', { stepValue: MAX_AMOUNT, escrow: MAX_AMOUNT }],
  ])('takes %s', (_, terms) => {
    expect(effectsOf(open(terms)).writes.get(opened)).toMatchObject(terms)
  })

  it('spends the last micro-USD after the fee, and not one more', () => {
    expect(effectsOf(open({}, new World().give(payer.id, 100_000n))).writes.get(payer.id)).toMatchObject({ balance: 0n })
    expect(failureOf(open({}, new World().give(payer.id, 99_999n)))).toBe(
      'insufficient balance: 0.099999 USD after the fee, below the escrow 0.1',
    )
  })

  it('of a chain shorter than a checkpoint has the empty tree’s root', () => {
    const world = rich()
    const ask = (checkpointRoot: Uint8Array) => world.ask(openStream, opening(short, payee.id, { checkpointRoot }), payer)
    expect(short.checkpointRoot).toEqual(EMPTY_LOG_ROOT)
    effectsOf(ask(EMPTY_LOG_ROOT))
    expect(failureOf(ask(chain.checkpointRoot))).toBe('invalid transaction: a checkpoint root for a chain without checkpoints')
    expect(failureOf(ask(new Uint8Array(32)))).toBe('invalid transaction: a checkpoint root for a chain without checkpoints')
  })

  it('pays accounts only, and is paid by accounts only', () => {
    const id = streamIdOf('there')
    const world = rich().put(id, streamOver(chain, payer.id, payee.id))
    expect(failureOf(open({ payee: id }, world))).toBe(`invalid transaction: ${shortId(id)} is not an account`)
    expect(failureOf(world.ask(openStream, opening(chain, payee.id), { ...payer, id }))).toBe(`unauthorized: ${shortId(id)} is not an account`)
  })
})

describe('topping up a stream', () => {
  const id = streamIdOf('one')
  const topUp = (change: Partial<TopUpStream>, stream: Partial<Stream> = {}, from = payer, balance = 1_000_000n) =>
    new World()
      .give(from.id, balance)
      .put(id, streamOver(chain, payer.id, payee.id, { escrow: 50_000n, settled: 7, ...stream }))
      .ask(topUpStream, { kind: 'topUpStream', stream: id, amount: 0n, lastPulse: 100, ...change }, from)

  it.each<[string, Partial<TopUpStream>, { escrow: bigint; lastPulse: number }]>([
    ['more escrow', { amount: 1n }, { escrow: 50_001n, lastPulse: 100 }],
    ['all the escrow that the chain can pay', { amount: 50_000n }, { escrow: 100_000n, lastPulse: 100 }],
    ['a later end', { lastPulse: 101 }, { escrow: 50_000n, lastPulse: 101 }],
    ['both', { amount: 2n, lastPulse: 10 + MAX_STREAM_PULSES }, { escrow: 50_002n, lastPulse: 10 + MAX_STREAM_PULSES }],
  ])('puts in %s', (_, change, after) => {
    const { writes, events } = effectsOf(topUp(change))
    const { amount = 0n } = change
    expect([...writes.keys()]).toEqual([payer.id, id])
    expect(writes.get(payer.id)).toMatchObject({ balance: 1_000_000n - amount })
    expect(writes.get(id)).toEqual({ ...streamOver(chain, payer.id, payee.id, { settled: 7 }), ...after })
    expect(events).toEqual([{ kind: 'StreamToppedUp', stream: id, amount, ...after }])
  })

  it.each<[string, Partial<TopUpStream>, Partial<Stream>, string]>([
    ['of nothing', {}, {}, 'invalid transaction: a top-up of nothing'],
    ['with an earlier end', { amount: 1n, lastPulse: 99 }, {}, "invalid transaction: a stream's last Pulse can only grow: it is 100, not 99"],
    ['past what the chain can pay', { amount: 50_001n }, {}, 'invalid transaction: an escrow of 0.100001 USD for a chain that pays 0.1 USD at most'],
    ['past the largest amount', { amount: MAX_AMOUNT }, { stepValue: MAX_AMOUNT, escrow: 1n }, 'invalid transaction: an escrow over 9007199254.740991 USD'],
    ['too far ahead', { lastPulse: 11 + MAX_STREAM_PULSES }, {}, 'invalid transaction: a last Pulse more than 10000000 Pulses ahead'],
    ['of an ended stream to an end that has passed', { lastPulse: 10 }, { lastPulse: 8 }, 'invalid transaction: a last Pulse of 10, which is not ahead of 10'],
    ['of a closed stream', { amount: 1n }, { closed: true }, 'the stream is closed'],
  ])('%s fails', (_, change, stream, sentence) => {
    expect(failureOf(topUp(change, stream))).toBe(sentence)
  })

  it('brings an ended stream back', () => {
    expect(effectsOf(topUp({ lastPulse: 11 }, { lastPulse: 9 })).writes.get(id)).toMatchObject({ lastPulse: 11, escrow: 50_000n })
  })

  it('is for the payer alone', () => {
    for (const from of [payee, other]) {
      expect(failureOf(topUp({ amount: 1n }, {}, from))).toBe('unauthorized: only the payer tops up a stream')
    }
  })

  it('spends the last micro-USD after the fee, and not one more', () => {
    expect(effectsOf(topUp({ amount: 500n }, {}, payer, 500n)).writes.get(payer.id)).toMatchObject({ balance: 0n })
    expect(failureOf(topUp({ amount: 500n }, {}, payer, 499n))).toBe('insufficient balance: 0.000499 USD after the fee, below the top-up 0.0005')
  })

  it('of what is no stream fails', () => {
    const world = new World().give(payer.id, 5n)
    const ask = (stream: string) => failureOf(world.ask(topUpStream, { kind: 'topUpStream', stream, amount: 1n, lastPulse: 11 }, payer))
    expect(ask(id)).toBe(`unknown stream ${shortId(id)}`)
    expect(ask(payer.id)).toBe(`unknown stream ${shortId(payer.id)}`)
  })
})
