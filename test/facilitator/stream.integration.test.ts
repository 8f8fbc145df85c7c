import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { networkOf } from '../../src/pulse/index.js'
import { devnetWallet, type Ledger, type Wallet } from '../../src/sdk/index.js'
import type { PaymentRequirements } from '../../src/x402/wire.js'
import { startScript, type Child } from '../support/child.js'
import { Cli, type CliResult, type RunningCli } from '../support/cli.js'
import { eventually } from '../support/eventually.js'
import { lyingProxy, type LyingProxy } from '../support/lying-proxy.js'
import { fund, fundedWallet, HttpClient, ledgerAt, PaidStream, payOnce, quoteOf, streamTermsOf, type PaidAnswer } from '../support/paid-stream.js'

/** `sion facilitator --streams`: it keeps the streams of sellers who have no desk, no store for tabs and no wallet. */

const script = fileURLToPath(new URL('../e2e/fixtures/troubled-seller.mjs', import.meta.url))

interface Shop {
  readonly child: Child
  readonly url: string
  readonly terms: PaymentRequirements
  readonly wallet: Wallet
}

let node: DevnetNode
let ledger: Ledger
let cli: Cli
let payer: Wallet
let facilitator: RunningCli
let proxy: LyingProxy
let judy: Shop
let ken: Shop
const client = new HttpClient()

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 20_000 })
  ledger = ledgerAt(node.url, node.chain)
  cli = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
  payer = await fundedWallet(ledger)
  await fund(ledger, devnetWallet('frank').account, 1_000_000n)
  proxy = await lyingProxy(await startFacilitator('127.0.0.1:0'))
  ;[judy, ken] = await Promise.all(['judy', 'ken'].map(openShop)) as [Shop, Shop]
})
afterAll(async () => {
  client.close()
  for (const shop of [judy, ken]) shop?.child.kill('SIGKILL')
  facilitator?.kill('SIGINT')
  await Promise.all([judy?.child.ended, ken?.child.ended, facilitator?.result])
  await proxy?.stop()
  await cli?.remove()
  await node?.stop()
})

async function startFacilitator(listen: string): Promise<string> {
  facilitator = cli.start('facilitator', '--streams', 'frank', '--listen', listen, '--window', '8', '--settle-every', '100000', '--settle-after', '3600')
  const [line, url = ''] = await facilitator.until(/^facilitating .* at (\S+)$/m)
  expect(line).toBe(`facilitating exact and stream on ${networkOf(node.chain)} at ${url}`)
  return url
}

/** Ctrl-C, and the next one at the same address. */
async function restartFacilitator(): Promise<CliResult> {
  facilitator.kill('SIGINT')
  const ended = await facilitator.result
  await startFacilitator(new URL(proxy.target).host)
  return ended
}

async function openShop(name: string): Promise<Shop> {
  const child = startScript(script, [name], { SION_NODE: node.url, SION_CHAIN: node.chain, DATA: `${cli.home}/${name}`, FACILITATOR: proxy.url })
  const url = `${(await child.until(/selling at (\S+)/))[1]}/v1/price`
  return { child, url, terms: await streamTermsOf(client, url), wallet: devnetWallet(name) }
}

function streamTo(shop: Shop): Promise<PaidStream> {
  return PaidStream.open(ledger, payer, { payee: shop.wallet.account })
}

async function pay(shop: Shop, stream: PaidStream, position: number, { window = false, fail }: { window?: boolean; fail?: string } = {}): Promise<PaidAnswer> {
  const headers = fail === undefined ? {} : { 'x-fail': fail }
  const answer = await payOnce(client, shop.url, shop.terms, stream.payload(position, { window }), headers)
  if (answer.status === 200) stream.accepted(position)
  return answer
}

async function expectPaid(answer: Promise<PaidAnswer>): Promise<void> {
  const { status, code } = await answer
  expect([status, code]).toEqual([200, undefined])
}

async function balanceOf(wallet: Wallet): Promise<bigint> {
  const { object } = await ledger.client.object(wallet.account)
  return object?.kind === 'account' ? object.balance : 0n
}

describe('a seller whose facilitator keeps the streams', () => {
  it('offers both schemes, with the facilitator’s terms', async () => {
    const { accepts } = await quoteOf(client, judy.url)
    expect(accepts.map(({ scheme }) => scheme)).toEqual(['exact', 'stream'])
    expect(accepts[1]).toMatchObject({ payTo: judy.wallet.account, extra: { chain: node.chain, decimals: 6, margin: 10, window: 8 } })
  })

  it('takes each payment once, and refuses in the desk’s words', async () => {
    const stream = await streamTo(judy)
    const first = await pay(judy, stream, 1)
    expect([first.status, first.settlement]).toEqual([
      200,
      { success: true, payer: payer.account, transaction: '', network: networkOf(node.chain), extensions: { sion: { stream: stream.id, position: 1 } } },
    ])
    const replay = await pay(judy, stream, 1)
    expect([replay.status, replay.settlement?.errorReason, replay.sion['position']]).toEqual([402, 'expected the element at position 2, not 1', 1])
    expect((await pay(ken, stream, 2)).code).toBe('wrong_payee')

    const copies = await Promise.all(Array.from({ length: 16 }, () => pay(judy, stream, 2)))
    expect(copies.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(copies.filter(({ code }) => code === 'wrong_position')).toHaveLength(15)
    await Promise.all([3, 4, 5, 6, 7, 8].reverse().map((position) => expectPaid(pay(judy, stream, position, { window: true }))))
  })

  it('leaves the element good when its handler fails', async () => {
    const stream = await streamTo(judy)
    for (const fail of ['500', 'throw']) expect((await pay(judy, stream, 1, { fail })).status).toBe(500)
    await expectPaid(pay(judy, stream, 1))
    expect((await pay(judy, stream, 2, { fail: '404' })).status).toBe(404)
    await expectPaid(pay(judy, stream, 3))
  })

  it('loses no payment where the facilitator’s answer is lost on the way', async () => {
    const stream = await streamTo(judy)
    const loseOnce = (path: string): void => {
      let lost = false
      proxy.lie = (exchange) => {
        if (lost || exchange.path !== path) return undefined
        lost = true
        return { raw: (response) => void response.destroy() }
      }
    }
    loseOnce('/settle')
    await expectPaid(pay(judy, stream, 1))
    loseOnce('/verify')
    const unknown = await pay(judy, stream, 2)
    expect([unknown.status, unknown.headers['retry-after']]).toEqual([503, '2'])
    proxy.lie = () => undefined
    await expectPaid(pay(judy, stream, 2))
    await expectPaid(pay(judy, stream, 3))
  })

  it('is paid by the facilitator, whose wallet has the fee of one transaction for the streams of all its sellers', async () => {
    // What the tests before sold is settled first.
    const first = await restartFacilitator()
    expect([first.code, first.stderr]).toEqual([0, expect.stringMatching(/settled \d+ steps of \d+ streams in one transaction/)])
    const streams = await Promise.all([judy, judy, ken].map(async (shop) => ({ shop, stream: await streamTo(shop) })))
    const before = await Promise.all([judy.wallet, ken.wallet].map(balanceOf))
    for (const [at, { shop, stream }] of streams.entries()) {
      for (let position = 1; position <= 2 + at; position++) await expectPaid(pay(shop, stream, position))
    }
    const { code, stderr } = await restartFacilitator()
    expect(code).toBe(0)
    expect(stderr.match(/settled .*/g)).toEqual(['settled 9 steps of 3 streams in one transaction'])
    expect(await Promise.all(streams.map(({ stream }) => stream.settled()))).toEqual([2, 3, 4])
    const after = await Promise.all([judy.wallet, ken.wallet].map(balanceOf))
    expect(after.map((balance, at) => balance - (before[at] ?? 0n))).toEqual([5_000n, 4_000n])
  })

  it('answers 503 while the facilitator is away, and then the same payment is good', async () => {
    const stream = await streamTo(ken)
    await expectPaid(pay(ken, stream, 1))
    facilitator.kill('SIGKILL')
    await facilitator.result
    for (const position of [2, 2]) {
      const away = await pay(ken, stream, position)
      expect([away.status, away.headers['retry-after'], JSON.parse(away.body)]).toEqual([503, '2', expect.objectContaining({ code: 'facilitator_unavailable' })])
    }
    await startFacilitator(new URL(proxy.target).host)
    await expectPaid(pay(ken, stream, 2))
  })
})

describe('x402’s own interface', () => {
  const ask = async (path: string, stream: PaidStream, position: number, key?: string): Promise<Record<string, unknown>> => {
    const accepted = { ...judy.terms }
    const response = await fetch(proxy.target + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
      body: JSON.stringify({
        x402Version: 2,
        paymentPayload: { x402Version: 2, accepted, payload: stream.payload(position) },
        paymentRequirements: accepted,
      }),
    })
    expect(response.status).toBe(200)
    return (await response.json()) as Record<string, unknown>
  }

  it('verifies and settles, or settles at once; each payment succeeds for one asker', async () => {
    const stream = await streamTo(judy)
    expect(await ask('/verify', stream, 1)).toEqual({ isValid: true, payer: payer.account })
    expect(await ask('/verify', stream, 1)).toMatchObject({ isValid: false, extensions: { sion: { code: 'wrong_position', position: 1 } } })
    const success = { success: true, payer: payer.account, transaction: '', network: networkOf(node.chain), extensions: { sion: { stream: stream.id, position: 1 } } }
    expect(await ask('/settle', stream, 1)).toEqual(success)
    expect(await ask('/settle', stream, 1)).toMatchObject({ success: false, errorReason: 'expected the element at position 2, not 1', transaction: '' })

    expect(await ask('/settle', stream, 2, 'a name of my own')).toMatchObject({ success: true })
    expect(await ask('/settle', stream, 2, 'a name of my own')).toMatchObject({ success: true })
    expect(await ask('/settle', stream, 2, 'another')).toMatchObject({ success: false })
    expect(await ask('/settle', stream, 2)).toMatchObject({ success: false })
    const settles = await Promise.all(Array.from({ length: 16 }, () => ask('/settle', stream, 3)))
    expect(settles.filter(({ success: good }) => good === true)).toHaveLength(1)

    await ask('/verify', stream, 4)
    expect(await ask('/release', stream, 4)).toEqual({ released: true })
    expect(await ask('/settle', stream, 4)).toMatchObject({ success: true })
    await restartFacilitator()
    await eventually(() => stream.settled(), 4)
  })

  it('says what it can do', async () => {
    const { kinds } = (await (await fetch(`${proxy.target}/supported`)).json()) as { kinds: object[] }
    expect(kinds).toContainEqual({
      x402Version: 2,
      scheme: 'stream',
      network: networkOf(node.chain),
      extra: { chain: node.chain, decimals: 6, margin: 10, window: 8 },
    })
  })
})
