/**
 * Payments per second of the desk alone, per store: 64 streams with one payment in flight each, strict positions, every
 * checkpoint's jump included; and 64 payments in flight on one stream with a window. `npm run bench:desk [-- REDIS_URL]`;
 * without a URL Redis is left out.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { StreamDesk, memoryStore, type DeskStore, type StreamLedger, type StreamPayment, type StreamRecord } from '../src/desk/index.js'
import { embeddedStore } from '../src/desk/stores/embedded.js'
import { redisStore } from '../src/desk/stores/redis.js'
import { PayerChain } from '../src/sdk/streams/payer-chain.js'

const STREAMS = 64
const STEP = 1_000n
const PAYEE = 'bb'.repeat(32)

interface Prepared {
  readonly record: StreamRecord
  readonly payments: readonly StreamPayment[]
}

/** The payer's work is done before the clock starts: this measures the desk. */
async function prepare(length: number, window: boolean): Promise<Prepared> {
  const id = randomBytes(32).toString('hex')
  const chain = await PayerChain.build({ seed: new Uint8Array(randomBytes(32)), salt: new Uint8Array(randomBytes(16)), length })
  const payments: StreamPayment[] = []
  for (let position = 1; position <= length; position++) {
    const jump = position % 64 === 0 ? chain.jump(position) : undefined
    payments.push({
      stream: id,
      position,
      value: chain.reveal(position),
      ...(jump === undefined ? {} : { jump }),
      ...(window ? { window } : {}),
    })
  }
  const record: StreamRecord = {
    id,
    payer: 'aa'.repeat(32),
    payee: PAYEE,
    asset: 'USD',
    anchor: chain.anchor,
    salt: chain.salt,
    checkpointRoot: chain.checkpointRoot,
    length,
    stepValue: STEP,
    escrow: STEP * BigInt(length),
    settled: 0,
    settledElement: chain.anchor,
    lastPulse: 1_000_000_000,
    state: 'open',
  }
  return { record, payments }
}

function ledgerOf(streams: readonly Prepared[]): StreamLedger {
  const records = new Map(streams.map(({ record }) => [record.id, record]))
  return {
    readStream: (id) => {
      const stream = records.get(id)
      return Promise.resolve(stream && { stream, pulse: 1 })
    },
    currentPulse: () => Promise.resolve(1),
    settle: () => Promise.reject(new Error('this bench does not settle')),
  }
}

async function payOne(desk: StreamDesk, payment: StreamPayment): Promise<void> {
  const verdict = await desk.accept(payment, STEP)
  if (!verdict.accepted) throw new Error(verdict.reason)
  verdict.finish()
}

/** Each stream pays one after the other. */
async function strict(store: DeskStore, streams: readonly Prepared[]): Promise<number> {
  const desk = new StreamDesk({ store, ledger: ledgerOf(streams), payee: PAYEE })
  const start = performance.now()
  await Promise.all(
    streams.map(async ({ payments }) => {
      for (const payment of payments) await payOne(desk, payment)
    }),
  )
  return (streams.reduce((sum, { payments }) => sum + payments.length, 0) / (performance.now() - start)) * 1_000
}

/** 64 at a time on one stream. */
async function windowed(store: DeskStore, streams: readonly Prepared[]): Promise<number> {
  const desk = new StreamDesk({ store, ledger: ledgerOf(streams), payee: PAYEE, window: 64 })
  let count = 0
  const start = performance.now()
  for (const { payments } of streams) {
    for (let at = 0; at < payments.length; at += 64) {
      await Promise.all(payments.slice(at, at + 64).map((payment) => payOne(desk, payment)))
    }
    count += payments.length
  }
  return (count / (performance.now() - start)) * 1_000
}

async function measure(name: string, store: DeskStore, length: number): Promise<void> {
  const rates: number[] = []
  for (const [run, width, window] of [
    [strict, STREAMS, false],
    [windowed, 8, true],
  ] as const) {
    const streams = await Promise.all(Array.from({ length: width }, () => prepare(length, window)))
    rates.push(await run(store, streams))
  }
  const [one, many] = rates.map((rate) => Math.round(rate).toLocaleString('en').padStart(12))
  console.log(`  ${name.padEnd(10)}${one} /s${many} /s`)
  await store.close()
}

console.log(`Payments the desk accepts (node ${process.version}):`)
console.log(`  ${'store'.padEnd(10)}${`${STREAMS} streams`.padStart(15)}${'64 on one'.padStart(15)}`)
await measure('(warm-up)', memoryStore(), 1_000)
await measure('memory', memoryStore(), 6_400)
const folder = await mkdtemp(join(tmpdir(), 'desk-bench-'))
await measure('embedded', embeddedStore(folder), 640)
await rm(folder, { recursive: true })
const url = process.argv[2]
if (url !== undefined) await measure('Redis', redisStore({ url, prefix: `bench:${process.pid}` }), 3_200)
