import { beforeAll, describe, expect, it } from 'vitest'
import { MAX_AMOUNT, shortId } from '../../src/codec/index.js'
import { settleStreams, closeStream } from '../../src/ledger/rules/streams.js'
import type { Stream } from '../../src/ledger/index.js'
import type { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { chainOf, streamIdOf, streamOver, walkTo } from './chains.js'
import { effectsOf, failureOf, signer, World } from './world.js'

const payer = signer(1)
const payee = signer(2)
const other = signer(3)
const id = streamIdOf('one')

let chain: PayerChain
beforeAll(async () => {
  chain = await chainOf(100)
})

function close(from = payee, terms: Partial<Stream> = {}, pulse = 10) {
  const world = new World().give(payer.id, 5n).give(payee.id, 7n).put(id, streamOver(chain, payer.id, payee.id, terms))
  return world.ask(closeStream, { kind: 'closeStream', stream: id }, from, { pulse })
}

describe('closing a stream', () => {
  it('gives the payer what is not settled, and keeps the stream, closed', () => {
    const { writes, events } = effectsOf(close(payee, { settled: 30, escrow: 90_500n }))
    expect([...writes.keys()]).toEqual([payer.id, id])
    expect(writes.get(payer.id)).toMatchObject({ balance: 60_505n })
    expect(writes.get(id)).toEqual(streamOver(chain, payer.id, payee.id, { settled: 30, escrow: 90_500n, closed: true }))
    expect(events).toEqual([{ kind: 'StreamClosed', stream: id, payer: payer.id, refund: 60_500n }])
  })

  it.each([
    ['nothing is settled', 0, 100_000n],
    ['one step is left', 99, 1_000n],
    ['all is settled', 100, 0n],
  ])('refunds exactly what is left when %s', (_, settled, refund) => {
    expect(effectsOf(close(payee, { settled })).events).toMatchObject([{ refund }])
  })

  it('is for the payee at any time', () => {
    for (const pulse of [0, 99, 100, 101, 10_000]) expect(effectsOf(close(payee, {}, pulse)).events).toHaveLength(1)
  })

  it('is for the payer only after the last Pulse: not in it, but in the next', () => {
    expect(failureOf(close(payer, {}, 99))).toBe('unauthorized: the payer closes a stream after its last Pulse, 100')
    expect(failureOf(close(payer, {}, 100))).toBe('unauthorized: the payer closes a stream after its last Pulse, 100')
    expect(effectsOf(close(payer, {}, 101)).events).toMatchObject([{ refund: 100_000n }])
  })

  it('is for nobody else, ever', () => {
    for (const pulse of [10, 101]) expect(failureOf(close(other, {}, pulse))).toBe('unauthorized: only payer and payee close a stream')
  })

  it('happens once', () => {
    for (const from of [payer, payee]) expect(failureOf(close(from, { closed: true }, 101))).toBe('the stream is closed')
    expect(failureOf(close(other, { closed: true }))).toBe('unauthorized: only payer and payee close a stream')
  })

  it('of what is no stream fails', () => {
    const world = new World().give(payer.id, 5n)
    for (const stream of [id, payer.id]) {
      expect(failureOf(world.ask(closeStream, { kind: 'closeStream', stream }, payer))).toBe(`unknown stream ${shortId(stream)}`)
    }
  })

  it('refunds a payer up to the largest amount, and not past it', () => {
    const world = (balance: bigint) => new World().give(payer.id, balance).put(id, streamOver(chain, payer.id, payee.id))
    const ask = (balance: bigint) => world(balance).ask(closeStream, { kind: 'closeStream', stream: id }, payee)
    expect(effectsOf(ask(MAX_AMOUNT - 100_000n)).writes.get(payer.id)).toMatchObject({ balance: MAX_AMOUNT })
    expect(failureOf(ask(MAX_AMOUNT - 99_999n))).toBe('invalid transaction: the payer would hold too much')
  })

  it('refunds on top of what the fee left when the payer closes', () => {
    const world = new World().give(payer.id, 5n).put(id, streamOver(chain, payer.id, payee.id))
    const result = world.ask(closeStream, { kind: 'closeStream', stream: id }, payer, { pulse: 101 })
    expect(effectsOf(result).writes.get(payer.id)).toMatchObject({ balance: 100_005n })
  })

  it('is the end of settling, in the same Pulse too', () => {
    const world = new World().put(id, streamOver(chain, payer.id, payee.id))
    world.apply(effectsOf(world.ask(closeStream, { kind: 'closeStream', stream: id }, payee)).writes)
    const late = { kind: 'settleStreams' as const, claims: [walkTo(chain, id, 5)] }
    expect(failureOf(world.ask(settleStreams, late, payee))).toBe('nothing to settle: the stream is closed')
  })

  it('after the last Pulse still leaves the payee its time until somebody does close', () => {
    const world = new World().put(id, streamOver(chain, payer.id, payee.id))
    const late = { kind: 'settleStreams' as const, claims: [walkTo(chain, id, 5)] }
    expect(effectsOf(world.ask(settleStreams, late, other, { pulse: 500 })).events).toMatchObject([{ amount: 5_000n }])
  })
})
