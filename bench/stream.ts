/**
 * What streams cost: `npm run bench:stream [-- --quick]`.
 *
 * - the desk: payments accepted per second, for each store;
 * - HTTP: requests per second of a route paid from streams beside the same route unpriced, over Express and Hono;
 * - settling: transactions and ledger hashes for 10^2 to 10^6 payments over 1 to 1,000 streams, by jump and by walk
 *   (the same sales, settled as if no path were kept), with the ledger's own rules executing them;
 * - bytes of a payment's header.
 *
 * Prints tables, and writes `bench/results/stream.json` and `stream-settlement.svg`.
 */
import { execFileSync } from 'node:child_process'
import { closeSync, fsyncSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { memoryStore, Settler, StreamDesk, type DeskStore } from '../src/desk/index.js'
import { embeddedDeskStore, redisDeskStore } from '../src/x402/stores/index.js'
import { startRedis } from '../test/support/redis.js'
import { LOAD_VARIABLE, serveLoads } from './support/http-load.js'
import { settlementChart, type SettlementPoint } from './support/settlement-chart.js'
import { PAYEE, payAll, prepareStream, rulesLedger, STEP, WalkingDesk, type PreparedStream } from './support/stream-market.js'
import { benchHttp } from './stream-http.js'

const STREAMS = [1, 10, 100, 1_000]
const POWERS = [2, 3, 4, 5, 6]

async function main(quick: boolean): Promise<void> {
  const settled = await benchSettling(quick ? 5 : 6)
  console.log('\nSettling: transactions and ledger hashes')
  console.table(settled.map(({ payments, streams, by, transactions, hashes }) => ({ payments, streams, by, transactions, hashes })))

  const desk = await benchDesk(quick)
  console.log('\nThe desk alone: payments accepted per second, strict positions, one in flight on each stream')
  console.table(desk)
  const fsyncs = fsyncsPerSecond()
  console.log(`the disk under the folder store flushes ${fsyncs} times a second`)

  const http = await benchHttp(quick ? 1 : 3, quick ? 3 : 5, (line) => process.stderr.write(`${line}\n`))
  console.log('\nOver HTTP, 32 connections, one server process: the ratio is to the same route unpriced, in the same run')
  console.table(http.map(({ framework, variant, requestsPerSecond, ratio, headerBytes }) => ({ framework, variant, 'requests/s': Math.round(requestsPerSecond), ratio: Number(ratio.toFixed(2)), 'header bytes': headerBytes })))

  const folder = fileURLToPath(new URL('results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const machine = { node: process.version, cores: availableParallelism(), commit: commit(), when: new Date().toISOString() }
  writeFileSync(join(folder, 'stream.json'), `${JSON.stringify({ machine, desk, fsyncsPerSecond: fsyncs, http, settled }, null, 2)}\n`)
  writeFileSync(join(folder, 'stream-settlement.svg'), settlementChart(settled))
  console.log(`\nwritten: bench/results/stream.json, bench/results/stream-settlement.svg`)
}

interface Settled extends SettlementPoint {
  readonly acceptedPerSecond: number
}

async function benchSettling(topPower: number): Promise<Settled[]> {
  const rows: Settled[] = []
  for (const power of POWERS.filter((each) => each <= topPower)) {
    const payments = 10 ** power
    for (const streams of STREAMS.filter((count) => count <= payments / 10)) {
      for (const by of ['jump', 'walk'] as const) {
        rows.push(await settleOnce(payments, streams, by))
        process.stderr.write(`${payments} payments over ${streams} streams by ${by}: ${rows.at(-1)?.transactions} transactions\n`)
      }
    }
  }
  return rows
}

async function settleOnce(payments: number, count: number, by: 'jump' | 'walk'): Promise<Settled> {
  const streams: PreparedStream[] = []
  for (let i = 0; i < count; i++) streams.push(await prepareStream(payments / count))
  const ledger = rulesLedger(streams)
  const options = { store: memoryStore(), ledger, payee: PAYEE, settleEvery: 2 ** 31, settleAfterSeconds: 1_000_000 }
  const desk = by === 'jump' ? new StreamDesk(options) : new WalkingDesk(options, streams)
  const acceptedPerSecond = Math.round(await payAll(desk, streams))
  await desk.stop()
  const { transactions, problems } = await new Settler({ desk }).settleAll()
  if (problems[0] !== undefined) throw new Error(problems[0].reason)
  const paid = ledger.paid()
  if (paid !== STEP * BigInt(payments)) throw new Error(`${paid} micro-USD were paid for ${payments} payments`)
  return {
    payments,
    streams: count,
    by,
    transactions: transactions.length,
    hashes: transactions.reduce((sum, { hashes }) => sum + hashes, 0),
    acceptedPerSecond,
  }
}

async function benchDesk(quick: boolean): Promise<{ store: string; streams: number; payments: number; 'payments/s': number }[]> {
  const rows: { store: string; streams: number; payments: number; 'payments/s': number }[] = []
  const redis = await startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec'])
  const folder = mkdtempSync(join(tmpdir(), 'sion-bench-'))
  try {
    const stores: [string, () => DeskStore, number][] = [
      ['memory', memoryStore, quick ? 50_000 : 200_000],
      ['Redis', () => redisDeskStore({ url: redis.url, prefix: `bench:${rows.length}` }), quick ? 20_000 : 100_000],
      ['folder', () => embeddedDeskStore(join(folder, String(rows.length))), quick ? 2_000 : 20_000],
    ]
    for (const [name, open, most] of stores) {
      for (const count of [1, 64, 1_000]) {
        const payments = count === 1 ? Math.min(most, name === 'memory' ? most : 2_000) : Math.max(most, count * 10)
        const streams: PreparedStream[] = []
        for (let i = 0; i < count; i++) streams.push(await prepareStream(Math.floor(payments / count)))
        const store = open()
        const desk = new StreamDesk({ store, ledger: rulesLedger(streams), payee: PAYEE, settleEvery: 2 ** 31, settleAfterSeconds: 1_000_000 })
        const rate = await payAll(desk, streams)
        await desk.stop()
        await store.close()
        rows.push({ store: name, streams: count, payments, 'payments/s': Math.round(rate) })
      }
    }
    return rows
  } finally {
    await redis.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What bounds the folder store: how often this disk can be asked to keep 4 KiB for certain. */
function fsyncsPerSecond(): number {
  const folder = mkdtempSync(join(tmpdir(), 'sion-fsync-'))
  const file = openSync(join(folder, 'file'), 'w')
  const block = Buffer.alloc(4_096)
  const started = performance.now()
  let count = 0
  while (performance.now() - started < 1_000) {
    writeSync(file, block, 0, block.length, 0)
    fsyncSync(file)
    count++
  }
  closeSync(file)
  rmSync(folder, { recursive: true, force: true })
  return count
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}

if (process.env[LOAD_VARIABLE] !== undefined) serveLoads()
else await main(process.argv.includes('--quick'))
