import { describe, expect, it } from 'vitest'
import { CHECKPOINT_EVERY, checkpointEntry } from '../../src/crypto/chain-step.js'
import { memoryStore, Settler, StreamDesk, type Jump, type SettleResult, type StreamLedger } from '../../src/desk/index.js'
import { decodeJumps } from '../../src/desk/tab-codec.js'
import { settleStreams } from '../../src/ledger/rules/streams.js'
import { leafHash, LogTree } from '../../src/merkle/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { streamIdOf, streamOver } from '../ledger/chains.js'
import { signer, World as LedgerWorld } from '../ledger/world.js'
import { accepted, FakeClock, Payer, refused, STEP, World } from './world.js'

const bytesOf = (length: number, fill: number): Uint8Array => new Uint8Array(length).fill(fill)
const build = (seed: number, length: number): Promise<PayerChain> =>
  PayerChain.build({ seed: bytesOf(32, seed), salt: bytesOf(16, 7), length })

/** Executes settlements by the ledger's own rules. */
function ledgerOf(world: LedgerWorld): StreamLedger {
  const asked = signer(3)
  return {
    async readStream(id) {
      const { kind: _, closed, ...stream } = world.stream(id)
      return { stream: { ...stream, id, asset: 'USD', state: closed ? 'closed' : 'open' }, pulse: world.pulse }
    },
    currentPulse: async () => world.pulse,
    async settle(items) {
      const claims = items.map(({ jump, ...item }) => ({ ...item, ...(jump && { jump: { ...jump, path: [...jump.path] } }) }))
      const result = world.ask(settleStreams, { kind: 'settleStreams', claims }, asked)
      if ('failed' in result) {
        const refusal = { code: 'failed', reason: result.failed }
        return { pulse: world.pulse, results: items.map(({ stream }) => ({ stream, refused: refusal })) }
      }
      world.apply(result.writes)
      return {
        pulse: world.pulse,
        results: result.events.flatMap((event): SettleResult[] => {
          if (event.kind === 'StreamSettled') return [{ stream: event.stream, settled: event.position }]
          return event.kind === 'StreamClaimRefused' ? [{ stream: event.stream, refused: event }] : []
        }),
      }
    },
  }
}

/** A payer whose root holds another chain's element at checkpoint `lie`, and its own at all others. */
async function liar(lie: number, length = 1_000) {
  const [chain, other] = [await build(1, length), await build(2, length)]
  const leaves = Array.from({ length: Math.floor(length / CHECKPOINT_EVERY) }, (_, at) => {
    const from = at + 1 === lie ? other : chain
    return leafHash(checkpointEntry(at + 1, from.reveal((at + 1) * CHECKPOINT_EVERY)))
  })
  const tree = LogTree.from(leaves)
  const id = streamIdOf(`lie ${lie}`)
  const [payer, payee] = [signer(1), signer(2)]
  const world = new LedgerWorld().give(payee.id, 0n)
  world.put(id, streamOver(chain, payer.id, payee.id, { checkpointRoot: tree.root(), lastPulse: 1_000_000 }))
  const ledger = ledgerOf(world)
  const clock = new FakeClock()
  const desk = new StreamDesk({ store: memoryStore(), ledger, clock, payee: payee.id })
  const jump = (index: number): Jump => ({ index, path: tree.inclusion(index - 1) })
  return {
    payer: new Payer(id, chain),
    desk,
    jump,
    paid: () => world.balance(payee.id),
    /** Serves up to `last`, with every jump that is due. */
    async serve(first: number, last: number) {
      const buyer = new Payer(id, chain)
      for (let position = first; position <= last; position++) {
        const index = Math.floor(position / CHECKPOINT_EVERY)
        const extra = position % CHECKPOINT_EVERY === 0 ? { jump: jump(index) } : {}
        accepted(await desk.accept(buyer.pay(position, extra), STEP)).finish()
      }
    },
    /** The payer pays its seller off by the false element: it can, since it knows the false chain. */
    async settleByLie(position = lie * CHECKPOINT_EVERY) {
      const outcome = await ledger.settle([{ stream: id, position, element: other.reveal(position), jump: jump(lie) }])
      expect(outcome.results).toEqual([{ stream: id, settled: position }])
      // Long enough that a desk reads the stream again where it matters.
      clock.time += 1_000
    },
    settle: () => new Settler({ desk }).settleAll([id]),
  }
}

describe('a payer whose root holds a false checkpoint', () => {
  for (const lie of [1, 5]) {
    const last = lie * CHECKPOINT_EVERY - 1

    it(`sells nothing past it: checkpoint ${lie} is refused without its jump, and with the only one that there is`, async () => {
      const { payer, desk, jump, serve, settle, paid } = await liar(lie)
      await serve(1, last)
      expect(refused(await desk.accept(payer.pay(last + 1), STEP))).toMatchObject({ code: 'jump_due', position: last })
      expect(refused(await desk.accept(payer.pay(last + 1, { jump: jump(lie) }), STEP)).code).toBe('wrong_jump')
      expect(refused(await desk.accept(payer.pay(last + 5), 5n * STEP)).code).toBe('jump_due')
      expect(await settle()).toMatchObject({ problems: [] })
      expect(paid()).toBe(BigInt(last) * STEP)
    })

    it(`gets nothing for free by settling checkpoint ${lie} first: all that was sold is paid`, async () => {
      const { desk, payer, serve, settle, settleByLie, paid } = await liar(lie)
      await serve(1, last)
      await settleByLie()
      expect(await settle()).toMatchObject({ problems: [] })
      expect(paid()).toBe(BigInt(last + 1) * STEP)
      // Nothing more of either chain is good, without and with a jump.
      expect((await desk.accept(payer.pay(last + 1), STEP)).accepted).toBe(false)
      expect((await desk.accept(payer.pay(last + 2), STEP)).accepted).toBe(false)
      expect(await desk.status(payer.id)).toMatchObject({ unsettled: 0 })
    })
  }

  it('leaves a walk from below it whole: settled in parts, and once more before the lie', async () => {
    const { payer, desk, serve, settle, settleByLie, paid } = await liar(2)
    await serve(1, 40)
    expect((await settle()).transactions).toMatchObject([{ steps: 40, hashes: 40 }])
    await serve(41, 127)
    expect(refused(await desk.accept(payer.pay(128), STEP)).code).toBe('jump_due')
    expect((await settle()).problems).toEqual([])
    expect(paid()).toBe(127n * STEP)
    await settleByLie()
    expect(paid()).toBe(128n * STEP)
  })

  it('is paid from above, where one price went past it to a checkpoint that is proven', async () => {
    const { payer, desk, jump, serve, settle, settleByLie, paid } = await liar(1)
    await serve(1, 60)
    expect(refused(await desk.accept(payer.pay(130), 70n * STEP)).code).toBe('jump_due')
    expect(refused(await desk.accept(payer.pay(130, { jump: jump(1) }), 70n * STEP)).code).toBe('jump_index')
    accepted(await desk.accept(payer.pay(130, { jump: jump(2) }), 70n * STEP)).finish()
    await settleByLie()
    const { transactions, problems } = await settle()
    expect(problems).toEqual([])
    expect(transactions).toHaveLength(1)
    expect(paid()).toBe(130n * STEP)
  })
})

describe('the jump of a checkpoint is due', () => {
  it('with the first payment past it, and a refused one changes nothing and is good with it', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    for (let position = 1; position <= 63; position++) accepted(await desk.accept(payer.pay(position), STEP)).finish()
    await desk.stop()
    const before = await world.store.load(payer.id)
    expect(refused(await desk.accept(payer.pay(64), STEP))).toEqual({
      accepted: false,
      code: 'jump_due',
      reason: 'the first payment past checkpoint 1 carries its jump',
      position: 63,
    })
    expect(await world.store.load(payer.id)).toEqual(before)
    accepted(await desk.accept({ ...payer.pay(64), jump: payer.chain.jump(64)! }, STEP)).finish()
    for (let position = 65; position <= 127; position++) accepted(await desk.accept(payer.pay(position), STEP)).finish()
    expect(refused(await desk.accept(payer.pay(128), STEP))).toMatchObject({ code: 'jump_due', position: 127 })
  })

  it('once: not again when the handler gave its step back', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(63), 63n * STEP)).finish()
    await accepted(await desk.accept(payer.payWithJump(64), STEP)).fail()
    accepted(await desk.accept(payer.pay(64), STEP)).finish()
  })

  it('with whichever comes first in a window, and the earlier one then needs none', async () => {
    const world = new World()
    const desk = world.desk({ window: 32 })
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(60), 60n * STEP)).finish()
    const pay = (position: number, jump?: Jump) =>
      desk.accept(payer.pay(position, { window: true, ...(jump && { jump }) }), STEP)
    expect(refused(await pay(70))).toMatchObject({ code: 'jump_due', position: 60, floor: 60, unused: [[61, 92]] })
    expect(refused(await pay(64))).toMatchObject({ code: 'jump_due' })
    accepted(await pay(62)).finish()
    accepted(await pay(70, payer.chain.jump(70))).finish()
    for (const position of [64, 61, 90, 63]) accepted(await pay(position)).finish()
    expect((await desk.plan(payer.id))?.item.position).toBe(66)
  })

  it('of several in one write with each of them that is past it before the first', async () => {
    const world = new World()
    const desk = world.desk({ window: 32 })
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(60), 60n * STEP)).finish()
    const pay = (position: number, jump?: Jump) =>
      desk.accept(payer.pay(position, { window: true, ...(jump && { jump }) }), STEP)
    const verdicts = await Promise.all([pay(66), pay(65, payer.chain.jump(65)), pay(64)])
    expect(verdicts.map((verdict) => (verdict.accepted ? 'accepted' : verdict.code))).toEqual(['jump_due', 'accepted', 'accepted'])
  })

  it('of the highest one only, where a price passes two at once', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream()
    accepted(await desk.accept(payer.pay(50), 50n * STEP)).finish()
    expect(refused(await desk.accept(payer.pay(150), 100n * STEP))).toMatchObject({
      code: 'jump_due',
      reason: 'the first payment past checkpoint 2 carries its jump',
    })
    const lower = payer.pay(150, { jump: payer.chain.jump(64)! })
    expect(refused(await desk.accept(lower, 100n * STEP)).code).toBe('jump_index')
    accepted(await desk.accept(payer.payWithJump(150, 100), 100n * STEP)).finish()
    expect((await desk.plan(payer.id))?.item).toMatchObject({ position: 150, jump: { index: 2 } })
  })

  it('not below the next one, where a tab begins again at what the ledger has settled', async () => {
    const world = new World()
    const payer = await world.stream()
    world.ledger.get(payer.id).settled = 100
    world.ledger.get(payer.id).settledElement = payer.chain.reveal(100)
    const desk = world.desk()
    for (let position = 101; position <= 127; position++) accepted(await desk.accept(payer.pay(position), STEP)).finish()
    expect(refused(await desk.accept(payer.pay(128), STEP))).toMatchObject({ code: 'jump_due', position: 127 })
    accepted(await desk.accept(payer.payWithJump(128), STEP)).finish()
    const settler = new Settler({ desk })
    expect((await settler.settleAll([payer.id])).problems).toEqual([])
    expect(world.ledger.get(payer.id).settled).toBe(128)
  })

  it('not at a server that does not know yet that another one took it', async () => {
    const world = new World()
    const [one, two] = [world.desk({ window: 32 }), world.desk({ window: 32 })]
    const payer = await world.stream()
    accepted(await two.accept(payer.pay(62), 62n * STEP)).finish()
    accepted(await one.accept({ ...payer.pay(70), jump: payer.chain.jump(70)!, window: true }, STEP)).finish()
    accepted(await two.accept(payer.pay(64, { window: true }), STEP)).finish()
    accepted(await two.accept(payer.pay(63), STEP)).finish()
  })
})

describe('the paths that a tab keeps', () => {
  it('are the lowest ones still to be settled and the newest, thirty-two in all', async () => {
    const world = new World()
    const desk = world.desk()
    const payer = await world.stream(4_096)
    const running = []
    for (let index = 1; index <= 40; index++) {
      running.push(accepted(await desk.accept(payer.payWithJump(64 * index, 64), 64n * STEP)))
      const stored = await world.store.load(payer.id)
      const kept = decodeJumps(stored!.jumps).map((jump) => jump.index)
      const lowest = Array.from({ length: Math.min(index, 31) }, (_, at) => at + 1)
      expect(kept).toEqual(index > 31 ? [...lowest, index] : lowest)
    }
    for (const payment of running) payment.finish()
    const plan = await desk.plan(payer.id)
    expect(plan?.item).toMatchObject({ position: 2_560, jump: { index: 40 } })
    expect(plan?.hashes).toBe(plan!.item.jump!.path.length + 1)
    expect(await world.ledger.settle([plan!.item])).toMatchObject({ results: [{ settled: 2_560 }] })
  })
})
