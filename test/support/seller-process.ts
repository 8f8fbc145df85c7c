import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Id } from '../../src/codec/index.js'
import { newWallet } from '../node/support.js'
import type { Market } from './market.js'

const script = fileURLToPath(new URL('../e2e/fixtures/seller.mjs', import.meta.url))

export interface SellerProcess {
  /** Of the one route, `/x`, at 0.25 USD. */
  readonly url: string
  readonly payee: Id
  /** What it logged so far. */
  log(): string
  /** Resolves when the handler has been entered this many times. */
  entered(times?: number): Promise<void>
  /** How often the handler was entered. */
  runs(): number
  /** `kill -9` */
  kill(): Promise<void>
}

export interface SellerProcessOptions {
  store: { folder: string } | { redis: string }
  payTo?: Id
  node?: string
  handler?: 'answer' | 'hang' | 'throw'
  clockOffsetMs?: number
  settleWaitSeconds?: number
}

/** Starts a seller in a process of its own; it ends with the market at the latest. */
export async function startSeller(market: Market, options: SellerProcessOptions): Promise<SellerProcess> {
  const payTo = options.payTo ?? newWallet().id
  const child = spawn(process.execPath, [script], {
    env: { PATH: process.env['PATH'], SELLER: JSON.stringify({ node: market.node.url, chain: market.node.chain, ...options, payTo }) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  let logged = ''
  let look = (): void => {}
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
    look()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (logged += text))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const kill = (): Promise<void> => {
    child.kill('SIGKILL')
    return ended
  }
  market.defer(kill)
  const runs = (): number => said.split('\n').filter((line) => line === 'entered').length
  const until = (condition: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      look = () => {
        if (condition()) resolve()
      }
      look()
      void ended.then(() => reject(new Error(`the seller ended: ${said}${logged}`)))
    })
  await until(() => said.includes('listening'))
  const [, url = ''] = /^listening (\S+)$/m.exec(said) ?? []
  return { url: `${url}/x`, payee: payTo, log: () => logged, entered: (times = 1) => until(() => runs() >= times), runs, kill }
}
