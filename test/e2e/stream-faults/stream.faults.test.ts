import { randomInt } from 'node:crypto'
import { devnetWallet } from '../../../src/sdk/index.js'
import { expect, it } from 'vitest'
import { fundedWallet, HttpClient, PaidStream, streamTermsOf } from '../../support/paid-stream.js'
import { diceOf, LoadBuyer, LoadCounts, type Dice } from '../../support/stream-load.js'
import { Faults, type FaultKind } from './faults.js'
import { FaultsWorld } from './world.js'

/**
 * Paid load on real servers whose processes, store and ledger are killed under it. `npm run test:faults` is the long
 * form: SION_FAULTS_SECONDS of load, SION_FAULTS_SEED to choose as an earlier run did.
 */

const seconds = Number(process.env['SION_FAULTS_SECONDS'] ?? 0)
const seed = Number(process.env['SION_FAULTS_SEED'] ?? randomInt(2 ** 31))

const WINDOW = 16
const LONG_RUN_LENGTH = 200_000

interface Setting {
  readonly store: 'redis' | 'embedded'
  /** Each once, in this order; the long form then goes on with any of them, alone and two at once. */
  readonly faults: readonly FaultKind[]
  /** And some of these. */
  readonly onlyLong: readonly FaultKind[]
  /** Requests that a buyer has in flight: 1 is strict. */
  readonly parallel: readonly number[]
  /** Attempts of the load between two faults. */
  readonly apart: number
}

/** … and that a fault lasts for: several settlements fall into the ledger's. */
const ATTEMPTS: Readonly<Record<FaultKind, number>> = {
  'kill server': 80,
  'restart server': 0,
  'kill redis': 80,
  'freeze redis': 40,
  'pause ledger': 800,
  'kill ledger': 400,
}

const settings: readonly Setting[] = [
  {
    store: 'redis',
    faults: ['kill server', 'kill redis', 'kill server', 'pause ledger', 'restart server', 'kill redis', 'kill ledger'],
    onlyLong: ['freeze redis'],
    parallel: [1, 1, 1, 8, 8],
    apart: 80,
  },
  {
    store: 'embedded',
    faults: ['kill server', 'kill server', 'pause ledger', 'kill ledger'],
    onlyLong: ['restart server'],
    parallel: [1, 1, 8],
    apart: 40,
  },
]

for (const setting of settings) {
  const servers = setting.store === 'redis' ? 'two servers over one Redis' : 'one server with a store in a folder'
  it(`every 200 is settled to the step, and no step is sold twice, whatever is killed: ${servers}`, { timeout: 240_000 + 3_000 * seconds }, async () => {
    const dice = diceOf(seed)
    const world = await FaultsWorld.start(setting.store, ['--price', '0.001', '--window', String(WINDOW), '--settle-every', '100', '--settle-after', '2'])
    try {
      await run(world, setting, dice)
    } catch (error) {
      throw new Error(`with SION_FAULTS_SEED=${seed}: ${String(error)}`, { cause: error })
    } finally {
      await world.end()
    }
  })
}

async function run(world: FaultsWorld, setting: Setting, dice: Dice): Promise<void> {
  const client = new HttpClient()
  const urls = world.servers.map(({ url }) => url)
  const terms = await streamTermsOf(client, urls[0] ?? '')
  client.close()
  const payer = await fundedWallet(world.ledger, 10_000_000_000n)
  const counts = new LoadCounts()
  const payee = devnetWallet('bob').account
  const length = seconds === 0 ? 20_000 : LONG_RUN_LENGTH
  const streams = await Promise.all(setting.parallel.map(() => PaidStream.open(world.ledger, payer, { payee, length })))
  const buyers = streams.map((stream, at) => {
    const parallel = setting.parallel[at] ?? 1
    return new LoadBuyer(`buyer ${at}, ${parallel} in flight`, stream, { urls, terms }, counts, diceOf(dice(2 ** 31)), parallel, WINDOW)
  })
  const faults = new Faults(world, buyers, counts, dice)

  const loaded = Promise.all(buyers.map((buyer) => buyer.run()))
  const startedAt = performance.now()
  for (const kind of setting.faults) {
    await counts.after(setting.apart)
    await faults.make(kind, ATTEMPTS[kind])
  }
  const all = [...setting.faults, ...setting.onlyLong]
  const any = (): FaultKind => all[dice(all.length)] ?? 'kill server'
  while (performance.now() - startedAt < seconds * 1_000) {
    await counts.after(dice(4 * setting.apart))
    const kinds = dice(3) === 0 ? distinct(any(), any()) : [any()]
    await Promise.all(kinds.map((kind) => faults.make(kind, dice(2 * ATTEMPTS[kind]))))
  }
  await counts.after(setting.apart)
  for (const buyer of buyers) buyer.stop()
  await loaded
  const loadSeconds = (performance.now() - startedAt) / 1_000

  for (const server of world.servers) {
    const { code, stderr } = await server.interrupt()
    expect([code, code === 0 ? '' : stderr.slice(-1_000)]).toEqual([0, ''])
  }
  const settling = await settleWhatDeadServersLeft(world)
  report(setting, faults, counts, buyers, loadSeconds, settling)

  expect(faults.violations).toEqual([])
  for (const buyer of buyers) {
    const settled = await buyer.stream.settled()
    const { name, served, lost, atRisk, violations } = buyer
    // No step twice, none unused that was served, no answer but 200, 402 and 503.
    expect([name, violations]).toEqual([name, []])
    // A step that is paid for and was not answered was in flight at a fault. A strict buyer has one request in flight, so
    // that is one unserved request per fault at most; another as many as it has in flight at that server.
    expect([name, [...lost].filter((step) => !atRisk.has(step))]).toEqual([name, []])
    // What the ledger moved: every step that was answered, and of the others only those.
    expect(settled).toBeGreaterThanOrEqual(served.size)
    expect(settled).toBeLessThanOrEqual(served.size + lost.size)
    expect(served.size).toBeGreaterThan(0)
  }
  const unsettled = await world.desk('status', 'bob', '--json')
  expect(JSON.parse(unsettled.stdout)).toMatchObject({ unsettledUsd: '0' })
}

/**
 * The servers settled at Ctrl-C. What one that was killed had in hand counts as served when its lease ends, and belongs
 * to whoever settles next: here `sion desk settle`. Returns how many seconds that took.
 */
async function settleWhatDeadServersLeft(world: FaultsWorld): Promise<number> {
  const startedAt = performance.now()
  for (;;) {
    const { code, stdout, stderr } = await world.desk('settle', 'bob')
    const seconds = (performance.now() - startedAt) / 1_000
    if (code === 0) return seconds
    if (seconds > 90) throw new Error(`still unsettled after ${seconds} s: ${stdout}${stderr}`)
  }
}

/** Two faults at once where they are done to different processes, else one. */
function distinct(one: FaultKind, other: FaultKind): FaultKind[] {
  return one.split(' ')[1] === other.split(' ')[1] ? [one] : [one, other]
}

function report(setting: Setting, faults: Faults, counts: LoadCounts, buyers: readonly LoadBuyer[], loadSeconds: number, settling: number): void {
  const lines = [
    `${setting.store}, seed ${seed}: ${loadSeconds.toFixed(1)} s of load, ${faults.reports.length} faults; settled ${settling.toFixed(1)} s after the end`,
    `  ${counts.served} served, ${counts.refused} refused, ${counts.unknown} not known at first, ${counts.copies} copies`,
    ...buyers.map(({ name, served, lost, refusalsInARow }) => `  ${name}: ${served.size} served, ${lost.size} paid and not served, at most ${refusalsInARow} refusals in a row`),
    ...faults.reports.map(({ kind, served, attempts, seconds: took }) => `  ${kind}: ${took.toFixed(1)} s, ${served} served in ${attempts} attempts`),
  ]
  process.stdout.write(`${lines.join('\n')}\n`)
}
