/**
 * How long a buyer waits for a paid answer, from its first request to the body, and what each stage of that took. All
 * processes are real: `sion devnet` with its four validators, `sion x402 serve`, and the buyer, which is this one. Between
 * the seller and its node stands a proxy that only looks at the clock.
 *
 * `npm run bench:exact [purchases]`
 */
import { cpus } from 'node:os'
import { payingFetch, settlementOf } from '../src/fetch/index.js'
import { httpTransport, type NodeTransport } from '../src/light/index.js'
import { devnetWallet, type Wallet } from '../src/sdk/index.js'
import { Cli } from '../test/support/cli.js'
import { lyingProxy } from '../test/support/lying-proxy.js'

const STAGES = ['402', 'account lookup', 'signing', 'check and submission', 'submitted to certified', 'receipt verification and answer'] as const

type Stage = (typeof STAGES)[number]
/** Milliseconds. */
type Purchase = Record<Stage | 'total', number>

const purchases = Number(process.argv[2] ?? 10)
if (!Number.isInteger(purchases) || purchases < 1) {
  process.stderr.write('usage: npm run bench:exact [purchases], a whole number from 1\n')
  process.exit(2)
}

/** When the purchase under way passed each point, in milliseconds of `performance.now()`. */
const at = { quoted: 0, asked: 0, looked: 0, signing: 0, signed: 0, paid: 0, taken: 0, certified: 0 }

const cli = await Cli.create()
const devnet = cli.start('devnet', '--listen', '127.0.0.1:0')
const [, chain = '', node = ''] = await devnet.until(/chain\s+([0-9a-f]{64})[\s\S]*API\s+(http:\S+)/)
const ends: (() => Promise<unknown>)[] = [() => cli.remove(), () => stop(devnet)]
try {
  await bench()
} finally {
  for (const end of ends.reverse()) await end()
}

async function bench(): Promise<void> {
  const known = cli.with({ SION_NODE: node, SION_CHAIN: chain })
  const funded = await known.run('faucet', 'dana', '100')
  if (funded.code !== 0) throw new Error(funded.stderr)

  const proxy = await lyingProxy(node)
  ends.push(() => proxy.stop())
  proxy.lie = ({ method, path, status }) => {
    if (method === 'POST' && path === '/v1/transactions') at.taken = performance.now()
    if (path.startsWith('/v1/receipts/') && status === 200) at.certified = performance.now()
    return undefined
  }
  const seller = known.start('x402', 'serve', 'carol', '--listen', '127.0.0.1:0', '--node', proxy.url)
  ends.push(() => stop(seller))
  const [, url = ''] = await seller.until(/^selling (\S+) /m)

  const pay = payingFetch({
    wallet: clocked(devnetWallet('dana')),
    node: clockedTransport(node),
    chain,
    maxTotal: '100',
    fetch: async (input, init) => {
      const request = new Request(input, init)
      if (request.headers.has('payment-signature')) at.paid = performance.now()
      const response = await fetch(request)
      if (response.status === 402) at.quoted = performance.now()
      return response
    },
  })

  const first = await buy(pay, url)
  const rest: Purchase[] = []
  for (let i = 0; i < purchases; i++) {
    // Not in step with the chain's own Pulses.
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_000))
    rest.push(await buy(pay, url))
  }
  report(first, rest)
}

async function buy(pay: ReturnType<typeof payingFetch>, url: string): Promise<Purchase> {
  const began = performance.now()
  const response = await pay(url)
  const body = await response.text()
  const ended = performance.now()
  if (response.status !== 200 || settlementOf(response)?.success !== true) throw new Error(`${response.status} ${body}`)
  return {
    '402': at.quoted - began,
    'account lookup': at.looked - at.asked,
    signing: at.signed - at.signing,
    'check and submission': at.taken - at.paid,
    'submitted to certified': at.certified - at.taken,
    'receipt verification and answer': ended - at.certified,
    total: ended - began,
  }
}

function report(first: Purchase, rest: readonly Purchase[]): void {
  const print = (line: string): void => void process.stdout.write(`${line}\n`)
  const row = (name: string, ...values: number[]): string => `${name.padEnd(32)}${values.map((value) => value.toFixed(0).padStart(8)).join('')}`
  print(`A buyer's wait for a paid answer: Node ${process.versions.node}, ${cpus().length} cores, ${rest.length} purchases after the first; milliseconds`)
  print(`${''.padEnd(32)}${['median', 'p90', 'first'].map((name) => name.padStart(8)).join('')}`)
  for (const stage of [...STAGES, 'total'] as const) {
    const values = rest.map((purchase) => purchase[stage])
    print(row(stage, quantile(values, 0.5), quantile(values, 0.9), first[stage]))
  }
}

/** Linear between the two nearest. */
function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const place = (sorted.length - 1) * q
  const [low, high] = [sorted[Math.floor(place)] ?? Number.NaN, sorted[Math.ceil(place)] ?? Number.NaN]
  return low + (high - low) * (place - Math.floor(place))
}

function clocked(wallet: Wallet): Wallet {
  return {
    ...wallet,
    async sign(message) {
      at.signing = performance.now()
      const signed = await wallet.sign(message)
      at.signed = performance.now()
      return signed
    },
  }
}

function clockedTransport(url: string): NodeTransport {
  const transport = httpTransport(url)
  return {
    ...transport,
    async get(path, options) {
      at.asked = performance.now()
      const answer = await transport.get(path, options)
      at.looked = performance.now()
      return answer
    },
  }
}

async function stop(child: ReturnType<Cli['start']>): Promise<void> {
  child.kill('SIGTERM')
  await child.result
}
