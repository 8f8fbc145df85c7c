// Streams without a network: chains, payments made beforehand, and a ledger in memory that executes the real rules.
import { randomBytes } from 'node:crypto'
import { StreamDesk, type SettleOutcome, type SettlePlan, type StreamDeskOptions, type StreamLedger, type StreamPayment, type StreamRecord } from '../../src/desk/index.js'
import { bestWay } from '../../src/desk/settle-plan.js'
import { DEFAULT_PARAMETERS, execute, type LedgerObject, type Stream } from '../../src/ledger/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'

export const STEP = 1_000n
export const PAYEE = 'bb'.repeat(32)
const PAYER = 'aa'.repeat(32)
const CHAIN = 'cc'.repeat(32)

export interface PreparedStream {
  readonly id: string
  readonly object: Stream
  readonly payments: readonly StreamPayment[]
}

/** One stream and all its payments, strict, each checkpoint's jump with the payment that reaches it. */
export async function prepareStream(length: number): Promise<PreparedStream> {
  const id = randomBytes(32).toString('hex')
  const salt = new Uint8Array(randomBytes(16))
  const chain = await PayerChain.build({ seed: new Uint8Array(randomBytes(32)), salt, length })
  const payments: StreamPayment[] = []
  for (let position = 1; position <= length; position++) {
    const jump = position % 64 === 0 ? chain.jump(position) : undefined
    payments.push({ stream: id, position, value: chain.reveal(position), ...(jump === undefined ? {} : { jump }) })
  }
  const object: Stream = {
    kind: 'stream',
    payer: PAYER,
    payee: PAYEE,
    anchor: chain.anchor,
    salt,
    checkpointRoot: chain.checkpointRoot,
    length,
    stepValue: STEP,
    escrow: STEP * BigInt(length),
    settled: 0,
    settledElement: chain.anchor,
    lastPulse: 1_000_000_000,
    closed: false,
  }
  return { id, object, payments }
}

/** Sells like any desk, and settles by walks alone: what settling would cost without checkpoints. */
export class WalkingDesk extends StreamDesk {
  readonly #payments: ReadonlyMap<string, readonly StreamPayment[]>

  constructor(options: StreamDeskOptions, streams: readonly PreparedStream[]) {
    super(options)
    this.#payments = new Map(streams.map(({ id, payments }) => [id, payments]))
  }

  override async plan(stream: string): Promise<SettlePlan | undefined> {
    const plan = await super.plan(stream)
    if (plan === undefined) return undefined
    // All was served, so the plan by jump goes as far as anything can; the same way without jumps is a walk of the most steps.
    const way = bestWay(plan.settled, plan.item.position, [])
    const payment = way && this.#payments.get(stream)?.[way.position - 1]
    if (way === undefined || payment === undefined) throw new Error(`no walk from ${plan.settled} to ${plan.item.position}`)
    const rest = plan.rest + plan.item.position - way.position
    return { ...plan, item: { stream, position: way.position, element: payment.value }, hashes: way.hashes, rest }
  }
}

/** Executes settlements with the ledger's own rules; their signatures are what it leaves out. */
export function rulesLedger(streams: readonly PreparedStream[]): StreamLedger & { paid(): bigint } {
  const state = new Map<string, LedgerObject>(streams.map(({ id, object }) => [id, object]))
  const funds = 1_000_000_000n
  state.set(PAYEE, { kind: 'account', balance: funds, dual: false, keys: { mlDsa: new Uint8Array(1312), slhDsa: new Uint8Array(32) } })
  let fees = 0n
  return {
    async readStream(id) {
      const object = state.get(id)
      return object?.kind === 'stream' ? { stream: recordOf(id, object), pulse: 1 } : undefined
    },
    currentPulse: async () => 1,
    async settle(items): Promise<SettleOutcome> {
      const executed = execute(
        state,
        {
          body: {
            chain: CHAIN,
            signer: PAYEE,
            nonce: randomBytes(16).toString('hex'),
            validUntil: 10,
            action: { kind: 'settleStreams', claims: items.map(({ jump, ...item }) => ({ ...item, ...(jump === undefined ? {} : { jump: { index: jump.index, path: [...jump.path] } }) })) },
          },
          mlDsa: new Uint8Array(2420),
        },
        { chain: CHAIN, pulse: 1, parameters: DEFAULT_PARAMETERS },
      )
      if (executed.kind !== 'executed' || executed.outcome.kind !== 'success') throw new Error(`the ledger refused: ${JSON.stringify(executed.kind === 'executed' ? executed.outcome : executed.reason)}`)
      for (const [id, object] of executed.writes) {
        if (object === null) state.delete(id)
        else state.set(id, object)
      }
      fees += executed.fee
      return {
        pulse: 1,
        results: executed.events.flatMap((event) => (event.kind === 'StreamSettled' ? [{ stream: event.stream, settled: event.position }] : [])),
      }
    },
    paid() {
      const payee = state.get(PAYEE)
      return payee?.kind === 'account' ? payee.balance + fees - funds : 0n
    },
  }
}

/** Pays everything, one payment in flight on each stream; payments per second. */
export async function payAll(desk: StreamDesk, streams: readonly PreparedStream[]): Promise<number> {
  const started = performance.now()
  await Promise.all(
    streams.map(async ({ payments }) => {
      for (const payment of payments) {
        const verdict = await desk.accept(payment, STEP, PAYEE)
        if (!verdict.accepted) throw new Error(verdict.reason)
        verdict.finish()
      }
    }),
  )
  return (streams.reduce((sum, { payments }) => sum + payments.length, 0) / (performance.now() - started)) * 1_000
}

function recordOf(id: string, { kind: _, closed, ...stream }: Stream): StreamRecord {
  return { ...stream, id, asset: 'USD', state: closed ? 'closed' : 'open' }
}
