/**
 * What answering 402 costs: requests per second of one route, unpriced and priced but unpaid, over Express and Hono, in
 * turn within one run; the load in another process. `npm run bench:quote -- [seconds a round] [rounds]`.
 *
 * The unpriced handler does nothing, so the ratio is the worst there is. Hono answers such a route in 16 µs, without a
 * promise; any answer of a quote's size from behind a middleware takes it 20 µs, so that its ratio is bounded by 0.8.
 */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import { Hono } from 'hono'
import { paywall as expressPaywall } from '../src/express/index.js'
import { paywall as honoPaywall } from '../src/hono/node.js'
import { memoryNonceStore } from '../src/x402/stores/index.js'
import { LOAD_VARIABLE, serveLoads, startLoader } from './support/http-load.js'

const CONNECTIONS = 32
const TARGET = 0.8

/** A pinned chain and a payee: a quote needs no ledger. */
const seller = { payTo: 'ee'.repeat(32), chain: 'c0'.repeat(32) }

interface Shop {
  readonly framework: string
  readonly port: number
  close(): Promise<void>
}

interface Figures {
  readonly rates: number[]
  readonly cpu: number[]
}

async function main(seconds: number, rounds: number): Promise<void> {
  const loader = startLoader()
  const shops = [await expressShop(), await honoShop()]
  try {
    const rows = []
    for (const { framework, port } of shops) {
      const measured = { unpriced: figures(), priced: figures() }
      // The first round warms up and is not counted.
      for (let round = -1; round < rounds; round++) {
        for (const [path, into, status] of [['/unpriced', measured.unpriced, '200'], ['/priced', measured.priced, '402']] as const) {
          const before = process.cpuUsage()
          const milliseconds = round < 0 ? 1_000 : seconds * 1_000
          const result = await loader.run({ port, path, milliseconds, streams: [], connections: CONNECTIONS, requirements: undefined })
          if (Object.keys(result.statuses).join() !== status) throw new Error(`${framework} ${path}: ${JSON.stringify(result.statuses)}`)
          if (round < 0) continue
          const { user, system } = process.cpuUsage(before)
          into.rates.push((result.answered / result.milliseconds) * 1_000)
          into.cpu.push((user + system) / result.answered)
        }
      }
      const ratios = measured.priced.rates.map((rate, round) => rate / (measured.unpriced.rates[round] ?? rate))
      rows.push({
        framework,
        'unpriced, requests/s': Math.round(median(measured.unpriced.rates)),
        'answering 402, requests/s': Math.round(median(measured.priced.rates)),
        ratio: Number(median(ratios).toFixed(2)),
        'unpriced, µs of CPU': Math.round(median(measured.unpriced.cpu)),
        '402, µs of CPU': Math.round(median(measured.priced.cpu)),
      })
    }
    console.log(`Node ${process.version}, ${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s, medians`)
    console.table(rows)
    for (const { framework, ratio, ...row } of rows) {
      const added = row['402, µs of CPU'] - row['unpriced, µs of CPU']
      console.log(`${framework} keeps ${ratio} of its throughput (target ${TARGET}): a 402 costs ${added} µs of CPU more than a handler that does nothing`)
    }
  } finally {
    loader.stop()
    for (const shop of shops) await shop.close()
  }
}

async function expressShop(): Promise<Shop> {
  const charge = expressPaywall({ ...seller, store: memoryNonceStore() })
  const app = express()
  const handler: express.RequestHandler = (_request, response) => {
    response.json({ report: 'sunny', degrees: 21 })
  }
  app.get('/unpriced', handler)
  app.get('/priced', charge('0.25'), handler)
  return listen('Express', createServer(app), charge)
}

async function honoShop(): Promise<Shop> {
  const charge = honoPaywall({ ...seller, store: memoryNonceStore() })
  const app = new Hono()
  app.get('/unpriced', (context) => context.json({ report: 'sunny', degrees: 21 }))
  app.get('/priced', charge('0.25'), (context) => context.json({ report: 'sunny', degrees: 21 }))
  return listen('Hono', createServer(getRequestListener(app.fetch)), charge)
}

async function listen(framework: string, server: Server, charge: { close(): Promise<void> }): Promise<Shop> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  return {
    framework,
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await charge.close()
    },
  }
}

function figures(): Figures {
  return { rates: [], cpu: [] }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

if (process.env[LOAD_VARIABLE] === undefined) await main(Number(process.argv[2] ?? 3), Number(process.argv[3] ?? 5))
else serveLoads()
