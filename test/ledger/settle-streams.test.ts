import { beforeAll, describe, expect, it } from 'vitest'
import { MAX_AMOUNT } from '../../src/codec/index.js'
import { checkpointEntry, createWalker } from '../../src/crypto/chain-step.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { SETTLE_HASH_LIMIT, WALK_LIMIT, type SettleJump, type Stream, type StreamClaim } from '../../src/ledger/index.js'
import type { RuleResult } from '../../src/ledger/rules/rule.js'
import { settleStreams } from '../../src/ledger/rules/streams.js'
import { leafHash, LogTree } from '../../src/merkle/index.js'
import type { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { chainOf, jumpTo, streamIdOf, streamOver, walkTo } from './chains.js'
import { lastPosition, longestChain } from './longest-chain.js'
import { effectsOf, failureOf, signer, World } from './world.js'

const payer = signer(1)
const payee = signer(2)
const facilitator = signer(3)
const otherPayee = signer(4)
const one = streamIdOf('one')
const two = streamIdOf('two')
const three = streamIdOf('three')

let chain: PayerChain
let twin: PayerChain
beforeAll(async () => {
  chain = await chainOf(5_000)
  twin = await chainOf(5_000, 'twin')
})

const over = (terms: Partial<Stream> = {}): Stream => streamOver(chain, payer.id, payee.id, terms)

function settle(claims: readonly StreamClaim[], world: World): RuleResult {
  return world.ask(settleStreams, { kind: 'settleStreams', claims: [...claims] }, facilitator)
}

interface Made {
  readonly position: number
  /** By default the chain's own. */
  readonly element?: Uint8Array
  readonly jump?: NonNullable<StreamClaim['jump']>
}

/** What one claim on a stream in this state comes to: how much was paid, or the refusal. */
function claim(made: Made, terms: Partial<Stream> = {}): bigint | { code: string; reason: string } {
  const element = made.position < 1 || made.position > chain.length ? chain.anchor : chain.reveal(made.position)
  const whole: StreamClaim = { stream: one, element, ...made }
  const world = new World().put(one, over(terms))
  const result = settle([whole], world)
  if ('failed' in result) return refusalBesideAGoodClaim(whole, world, result.failed)
  const [paid] = result.events
  if (paid?.kind !== 'StreamSettled') throw new Error('not a payment')
  expect(paid.position).toBe(whole.position)
  expect(result.writes.get(one)).toEqual({ ...over(terms), settled: whole.position, settledElement: whole.element })
  expect(result.writes.get(payee.id)).toMatchObject({ balance: paid.amount })
  return paid.amount
}

/** Alone it fails the transaction; beside one that is good it is an event, and touches nothing. */
function refusalBesideAGoodClaim(refused: StreamClaim, world: World, failure: string): { code: string; reason: string } {
  world.put(two, streamOver(twin, payer.id, otherPayee.id))
  const { writes, events } = effectsOf(settle([refused, walkTo(twin, two, 1)], world))
  const [refusal, paid] = events
  if (refusal?.kind !== 'StreamClaimRefused' || paid?.kind !== 'StreamSettled') throw new Error('not one refusal and one payment')
  expect(failure).toBe(`nothing to settle: ${refusal.reason}`)
  expect(refusal.stream).toBe(one)
  expect([...writes.keys()]).toEqual([otherPayee.id, two])
  return { code: refusal.code, reason: refusal.reason }
}

describe('settling by a walk', () => {
  it('pays the payee for every step since the last settlement, whoever submits it', () => {
    const world = new World().give(payee.id, 7n).put(one, over())
    const { writes, events } = effectsOf(settle([walkTo(chain, one, 3)], world))
    expect([...writes.keys()]).toEqual([payee.id, one])
    expect(writes.get(payee.id)).toMatchObject({ kind: 'account', balance: 3_007n })
    expect(writes.get(one)).toEqual(over({ settled: 3 }))
    expect(events).toEqual([{ kind: 'StreamSettled', stream: one, payee: payee.id, position: 3, amount: 3_000n }])
    world.apply(writes)
    expect(effectsOf(settle([walkTo(chain, one, 10)], world)).events).toMatchObject([{ position: 10, amount: 7_000n }])
  })

  it.each<[string, number, Partial<Stream>, bigint]>([
    ['the first step', 1, {}, 1_000n],
    ['one step past the settled one', 101, { settled: 100 }, 1_000n],
    ['the last step of the chain', 5_000, { settled: 4_999 }, 1_000n],
    ['as far as one walk goes', WALK_LIMIT, {}, 4_096_000n],
    ['as far as the escrow covers exactly', 100, { escrow: 100_000n }, 100_000n],
    ['as far as an uneven escrow covers', 100, { escrow: 100_999n }, 100_000n],
  ])('goes to %s', (_, position, terms, amount) => {
    expect(claim({ position }, terms)).toBe(amount)
  })

  it.each<[string, Made, Partial<Stream>, string, string]>([
    ['at the settled position', { position: 100 }, { settled: 100 }, 'already_settled', 'position 100 is settled: the stream is at 100'],
    ['below the settled position', { position: 99 }, { settled: 100 }, 'already_settled', 'position 99 is settled: the stream is at 100'],
    ['at position 0', { position: 0 }, {}, 'already_settled', 'position 0 is settled: the stream is at 0'],
    ['one past the end', { position: 5_001 }, { settled: 4_999 }, 'past_end', 'position 5001 is past the end of the chain, 5000'],
    ['at the highest position there is', { position: 2 ** 32 - 1 }, {}, 'past_end', 'position 4294967295 is past the end of the chain, 5000'],
    ['one step past the escrow', { position: 100 }, { escrow: 99_999n }, 'insufficient_escrow', 'position 100 is more than the escrow of 0.099999 USD covers'],
    ['one step too far for one walk', { position: 4_097 }, {}, 'walk_too_long', 'a walk of 4097 steps; at most 4096'],
    ['on a closed stream', { position: 1 }, { closed: true }, 'stream_closed', 'the stream is closed'],
  ])('%s is refused', (_, made, terms, code, reason) => {
    expect(claim(made, terms)).toEqual({ code, reason })
  })

  it('refuses an element of another position, chain or salt, and one with a bit changed', () => {
    const refusal = { code: 'wrong_element', reason: 'the element does not walk down to position 100' }
    expect(claim({ position: 110, element: chain.reveal(111) }, { settled: 100 })).toEqual(refusal)
    expect(claim({ position: 110, element: chain.reveal(109) }, { settled: 100 })).toEqual(refusal)
    expect(claim({ position: 110, element: twin.reveal(110) }, { settled: 100 })).toEqual(refusal)
    expect(claim({ position: 110 }, { settled: 100, salt: twin.salt })).toEqual(refusal)
    for (const bit of [0, 7]) {
      for (const at of [0, 31]) {
        const element = chain.reveal(110)
        element[at] = element[at]! ^ (1 << bit)
        expect(claim({ position: 110, element }, { settled: 100 })).toEqual(refusal)
      }
    }
  })

  it('refuses an element that is only the settled one again', () => {
    expect(claim({ position: 101, element: chain.reveal(100) }, { settled: 100 })).toMatchObject({ code: 'wrong_element' })
    expect(claim({ position: 1, element: chain.anchor })).toEqual({ code: 'wrong_element', reason: 'the element does not walk down to position 0' })
  })

  it('reaches the last position there is, 2^32 − 1', () => {
    const { element, salt } = longestChain
    const settledElement = createWalker(salt).down(element, lastPosition, lastPosition - 1)
    const stream = over({ salt, length: lastPosition, stepValue: 1n, escrow: BigInt(lastPosition), settled: lastPosition - 1, settledElement })
    const world = new World().put(one, stream)
    expect(effectsOf(settle([{ stream: one, position: lastPosition, element }], world)).events).toMatchObject([{ position: lastPosition, amount: 1n }])
  })
})

describe('settling by a jump', () => {
  const jumping = (position: number, change: Partial<SettleJump> = {}): Made => {
    const { jump } = jumpTo(chain, one, position)
    return { position, jump: { ...jump, ...change } }
  }

  it.each<[string, number, Partial<Stream>, bigint]>([
    ['the first checkpoint', 64, {}, 64_000n],
    ['between two checkpoints', 100, {}, 100_000n],
    ['the step before the next checkpoint', 127, {}, 127_000n],
    ['the last checkpoint', 4_992, {}, 4_992_000n],
    ['the end of the chain, further than any walk', 5_000, {}, 5_000_000n],
    ['above a checkpoint that is settled already', 100, { settled: 70 }, 30_000n],
    ['as far as the escrow covers exactly', 100, { escrow: 100_000n }, 100_000n],
  ])('goes to %s', (_, position, terms, amount) => {
    expect(claim(jumping(position), terms)).toBe(amount)
  })

  it('serves every checkpoint of the chain', () => {
    for (let index = 1; index <= 78; index++) expect(claim(jumping(index * 64))).toBe(BigInt(index) * 64_000n)
  })

  it.each<[string, () => Made, Partial<Stream>, string, string]>([
    ['to checkpoint 0', () => jumping(64, { index: 0 }), {}, 'jump_past_end', 'checkpoint 0 of 78'],
    ['to the checkpoint past the last', () => ({ ...jumping(5_000), jump: { index: 79, path: [] } }), {}, 'jump_past_end', 'checkpoint 79 of 78'],
    ['to the highest index there is', () => jumping(5_000, { index: 2 ** 32 - 1 }), {}, 'jump_past_end', 'checkpoint 4294967295 of 78'],
    ['to the checkpoint above', () => jumping(127, { index: 2 }), {}, 'jump_index', 'checkpoint 2 is not the one below position 127'],
    ['to a checkpoint further down', () => jumping(128, { index: 1 }), {}, 'jump_index', 'checkpoint 1 is not the one below position 128'],
    ['at the settled position', () => jumping(64), { settled: 64 }, 'already_settled', 'position 64 is settled: the stream is at 64'],
    ['past the escrow', () => jumping(100), { escrow: 99_999n }, 'insufficient_escrow', 'position 100 is more than the escrow of 0.099999 USD covers'],
    ['past the end', () => ({ ...jumping(5_000), position: 5_001 }), {}, 'past_end', 'position 5001 is past the end of the chain, 5000'],
    ['on a closed stream', () => jumping(64), { closed: true }, 'stream_closed', 'the stream is closed'],
  ])('%s is refused', (_, made, terms, code, reason) => {
    expect(claim(made(), terms)).toEqual({ code, reason })
  })

  it('refuses every path but the right one', () => {
    const refusal = { code: 'wrong_jump', reason: "checkpoint 10 is not proven under the stream's root" }
    const { jump } = jumpTo(chain, one, 650)
    const flipped = jump.path.map((node) => node.slice())
    flipped[3]![0]! ^= 1
    const paths: [string, Uint8Array[]][] = [
      ['empty', []],
      ['too short', jump.path.slice(0, -1)],
      ['without its first node', jump.path.slice(1)],
      ['too long', [...jump.path, new Uint8Array(32)]],
      ['with its last node twice', [...jump.path, jump.path.at(-1)!]],
      ['the wrong way round', jump.path.toReversed()],
      ['with a bit changed', flipped],
      ['of the neighbour', chain.jump(64 * 9)!.path],
      ['of another chain', twin.jump(650)!.path],
      ['of 26 nodes', Array.from({ length: 26 }, () => new Uint8Array(32))],
    ]
    for (const [name, path] of paths) expect(claim(jumping(650, { path })), name).toEqual(refusal)
  })

  it('refuses an element of another position, another chain, another salt or another root', () => {
    const refusal = { code: 'wrong_jump', reason: "checkpoint 10 is not proven under the stream's root" }
    expect(claim({ ...jumping(650), element: chain.reveal(651) })).toEqual(refusal)
    expect(claim({ ...jumping(650), element: twin.reveal(650) })).toEqual(refusal)
    expect(claim({ ...jumping(640), element: chain.reveal(641) })).toEqual(refusal)
    expect(claim(jumping(650), { salt: twin.salt })).toEqual(refusal)
    expect(claim(jumping(650), { checkpointRoot: twin.checkpointRoot })).toEqual(refusal)
  })

  it('needs no path where the chain has one checkpoint, and takes none', async () => {
    const small = await chainOf(100, 'small')
    const world = new World().put(one, streamOver(small, payer.id, payee.id))
    const { jump, ...made } = jumpTo(small, one, 100)
    expect(jump).toEqual({ index: 1, path: [] })
    expect(effectsOf(settle([{ ...made, jump }], world)).events).toMatchObject([{ position: 100 }])
    expect(failureOf(settle([{ ...made, jump: { index: 1, path: [new Uint8Array(32)] } }], world))).toBe(
      "nothing to settle: checkpoint 1 is not proven under the stream's root",
    )
    // The root itself is no leaf's hash of another element.
    expect(failureOf(settle([{ ...made, element: small.checkpointRoot, jump }], world))).toContain('not proven')
  })

  it('has no checkpoint to go to in a chain of 63', async () => {
    const tiny = await chainOf(63, 'tiny')
    const world = new World().put(one, streamOver(tiny, payer.id, payee.id))
    const jump = { index: 1, path: [] }
    expect(failureOf(settle([{ ...walkTo(tiny, one, 63), jump }], world))).toBe('nothing to settle: checkpoint 1 of 0')
  })

  it('reaches the last position there is, 2^32 − 1, over 25 nodes', () => {
    const { element, salt, root, jump } = longestChain
    // Of 26 rows, one in which it is the odd one out.
    expect(jump.path).toHaveLength(25)
    const stream = over({ salt, checkpointRoot: root, length: lastPosition, stepValue: 1n, escrow: BigInt(lastPosition) })
    const world = new World().put(one, stream)
    const made = { stream: one, position: lastPosition, element, jump }
    expect(effectsOf(settle([made], world)).events).toMatchObject([{ position: lastPosition, amount: BigInt(lastPosition) }])
    expect(failureOf(settle([{ ...made, jump: { ...jump, index: jump.index - 1 } }], world))).toContain('is not the one below position')
    expect(failureOf(settle([{ ...made, jump: { ...jump, path: jump.path.slice(1) } }], world))).toContain('not proven')
  })

  it('can be followed by a walk from where it landed', () => {
    const world = new World().put(one, over())
    world.apply(effectsOf(settle([jumpTo(chain, one, 4_995)], world)).writes)
    expect(effectsOf(settle([walkTo(chain, one, 5_000)], world)).events).toMatchObject([{ position: 5_000, amount: 5_000n }])
  })
})

describe('a payer who committed to a false checkpoint', () => {
  /** Checkpoint 1 is not of the chain, all the others are. */
  function falseTree(): { root: Uint8Array; falseElement: Uint8Array; path: (index: number) => Uint8Array[] } {
    const falseElement = taggedHash('test/false checkpoint')
    const leaves = Array.from({ length: 78 }, (_, at) => {
      const element = at === 0 ? falseElement : chain.reveal(64 * (at + 1))
      return leafHash(checkpointEntry(at + 1, element))
    })
    const tree = LogTree.from(leaves)
    return { root: tree.root(), falseElement, path: (index) => tree.inclusion(index - 1) }
  }

  it('can settle itself off the chain, where no walk arrives, but not below a checkpoint that the payee saw proven', () => {
    const { root, falseElement, path } = falseTree()
    const world = new World().put(one, over({ checkpointRoot: root }))
    // The payee has served up to 1,000 when the payer pays for 64 with an element that is none of the chain's.
    const trick = { stream: one, position: 64, element: falseElement, jump: { index: 1, path: path(1) } }
    world.apply(effectsOf(settle([trick], world)).writes)
    expect(failureOf(settle([walkTo(chain, one, 1_000)], world))).toBe('nothing to settle: the element does not walk down to position 64')
    // Whoever asked for each checkpoint's jump, as the payments went past it, loses nothing.
    const kept = { ...walkTo(chain, one, 1_000), jump: { index: 15, path: path(15) } }
    expect(effectsOf(settle([kept], world)).events).toMatchObject([{ position: 1_000, amount: 936_000n }])
  })
})

describe('settling many streams', () => {
  const third = (): Stream => streamOver(chain, payer.id, otherPayee.id)

  it('adds up two streams of one payee, and keeps another’s apart', () => {
    const world = new World().give(payee.id, 5n)
    world.put(one, over()).put(two, streamOver(twin, payer.id, payee.id)).put(three, third())
    const claims = [walkTo(chain, one, 3), jumpTo(twin, two, 64), walkTo(chain, three, 2)]
    const { writes, events } = effectsOf(settle(claims, world))
    expect(writes.get(payee.id)).toMatchObject({ balance: 67_005n })
    expect(writes.get(otherPayee.id)).toMatchObject({ balance: 2_000n })
    expect(events.map((event) => event.kind)).toEqual(['StreamSettled', 'StreamSettled', 'StreamSettled'])
  })

  it('pays a payee who submits it on top of what the fee left', () => {
    const world = new World().give(payee.id, 500n).put(one, over())
    const result = world.ask(settleStreams, { kind: 'settleStreams', claims: [walkTo(chain, one, 1)] }, payee)
    expect(effectsOf(result).writes.get(payee.id)).toMatchObject({ balance: 1_500n })
  })

  it('refuses one claim and pays the others, in the order asked', () => {
    const world = new World().put(one, over({ settled: 3 })).put(two, streamOver(twin, payer.id, payee.id))
    const claims = [walkTo(chain, one, 3), walkTo(twin, two, 2), walkTo(chain, three, 1)]
    const { writes, events } = effectsOf(settle(claims, world))
    expect([...writes.keys()]).toEqual([payee.id, two])
    expect(events).toEqual([
      { kind: 'StreamClaimRefused', stream: one, code: 'already_settled', reason: 'position 3 is settled: the stream is at 3' },
      { kind: 'StreamSettled', stream: two, payee: payee.id, position: 2, amount: 2_000n },
      { kind: 'StreamClaimRefused', stream: three, code: 'unknown_stream', reason: 'no such stream' },
    ])
  })

  it('fails when nothing at all is paid, with the first reason', () => {
    const world = new World().put(one, over({ settled: 3 }))
    expect(failureOf(settle([walkTo(chain, one, 3), walkTo(chain, three, 1)], world))).toBe(
      'nothing to settle: position 3 is settled: the stream is at 3',
    )
    expect(failureOf(settle([walkTo(chain, payer.id, 1)], world.give(payer.id, 5n)))).toBe('nothing to settle: no such stream')
  })

  it('of no streams, or of one stream twice, is invalid', () => {
    const world = new World().put(one, over())
    expect(failureOf(settle([], world))).toBe('invalid transaction: a settlement of no streams')
    expect(failureOf(settle([walkTo(chain, one, 1), walkTo(chain, one, 2)], world))).toBe('invalid transaction: a settlement that names a stream twice')
  })

  it('refuses what would overfill the payee, by one micro-USD, and pays the others', () => {
    const full = (room: bigint): World => new World().give(payee.id, MAX_AMOUNT - room).put(one, over()).put(two, streamOver(twin, payer.id, otherPayee.id))
    const claims = [walkTo(chain, one, 3), walkTo(twin, two, 1)]
    expect(effectsOf(settle(claims, full(3_000n))).writes.get(payee.id)).toMatchObject({ balance: MAX_AMOUNT })
    expect(effectsOf(settle(claims, full(2_999n))).events).toEqual([
      { kind: 'StreamClaimRefused', stream: one, code: 'payee_full', reason: 'the payee would hold too much' },
      { kind: 'StreamSettled', stream: two, payee: otherPayee.id, position: 1, amount: 1_000n },
    ])
    expect(failureOf(settle(claims.slice(0, 1), full(0n)))).toBe('nothing to settle: the payee would hold too much')
  })

  it('costs exactly its limit of hashes and not one more, a refused claim’s included', () => {
    const walks = SETTLE_HASH_LIMIT / WALK_LIMIT
    const world = new World()
    const claims: StreamClaim[] = []
    for (let at = 0; at < walks; at++) {
      const id = streamIdOf(`many ${at}`)
      world.put(id, over())
      claims.push(walkTo(chain, id, WALK_LIMIT))
    }
    world.put(one, over())
    expect(effectsOf(settle(claims, world)).events).toHaveLength(walks)
    const tooMuch = `invalid transaction: a settlement of more than ${SETTLE_HASH_LIMIT} hashes`
    expect(failureOf(settle([...claims, walkTo(chain, one, 1)], world))).toBe(tooMuch)
    const wrong = { ...walkTo(chain, streamIdOf('many 0'), WALK_LIMIT), element: twin.anchor }
    expect(failureOf(settle([wrong, ...claims.slice(1), walkTo(chain, one, 1)], world))).toBe(tooMuch)
    // A jump costs its walk, its leaf and its path.
    const jump = jumpTo(chain, one, 64 * 78)
    const spare = 1 + jump.jump.path.length
    const shorter = walkTo(chain, streamIdOf('many 0'), WALK_LIMIT - spare)
    expect(effectsOf(settle([shorter, ...claims.slice(1), jump], world)).events).toHaveLength(walks + 1)
    const longer = walkTo(chain, streamIdOf('many 0'), WALK_LIMIT - spare + 1)
    expect(failureOf(settle([longer, ...claims.slice(1), jump], world))).toBe(tooMuch)
    // What is refused before a hash is made costs nothing.
    world.put(two, over({ closed: true }))
    expect(effectsOf(settle([...claims, walkTo(chain, two, WALK_LIMIT)], world)).events).toHaveLength(walks + 1)
  })
})
