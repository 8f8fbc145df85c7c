import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toHex } from '../../src/codec/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { networkOf } from '../../src/pulse/index.js'
import { devnetWallet, type Ledger, type Wallet } from '../../src/sdk/index.js'
import { CODES, isCode } from '../../src/x402/codes.js'
import type { PaymentRequirements } from '../../src/x402/wire.js'
import { startScript, type Child } from '../support/child.js'
import { Cli, type RunningCli } from '../support/cli.js'
import { eventually } from '../support/eventually.js'
import { fund, fundedWallet, HttpClient, jumpJson, ledgerAt, PaidStream, payOnce, quoteOf, streamTermsOf, type PaidAnswer } from '../support/paid-stream.js'

/** The seller's side of streams: the commands as they are shipped, paid with headers that are made by hand. */

interface Shop {
  readonly running: RunningCli
  readonly line: string
  readonly url: string
  readonly terms: PaymentRequirements
  readonly wallet: Wallet
}

let node: DevnetNode
let ledger: Ledger
let cli: Cli
let payer: Wallet
const client = new HttpClient()
/** Strict, settles late: bob's. With a window of 32: carol's. */
let strict: Shop
let windowed: Shop

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 20_000 })
  ledger = ledgerAt(node.url, node.chain)
  cli = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
  payer = await fundedWallet(ledger)
  ;[strict, windowed] = await Promise.all([
    openShop('bob', '--path', '/v1/price', '--body', '{"gpu_hour_usd":1.95}', '--settle-every', '100000', '--settle-after', '3600'),
    openShop('carol', '--window', '32', '--settle-every', '100000', '--settle-after', '3600'),
  ])
})
afterAll(async () => {
  client.close()
  for (const shop of [strict, windowed]) shop?.running.kill('SIGINT')
  await Promise.all([strict?.running.result, windowed?.running.result])
  await cli?.remove()
  await node?.stop()
})

async function openShop(name: string, ...args: string[]): Promise<Shop> {
  const wallet = devnetWallet(name)
  await fund(ledger, wallet.account, 1_000_000n)
  const running = cli.start('x402', 'serve', name, '--streams', '--price', '0.001', '--listen', '127.0.0.1:0', ...args)
  const [line, url = ''] = await running.until(/^selling (\S+) at .*$/m)
  return { running, line, url, terms: await streamTermsOf(client, url), wallet }
}

/** A stream that pays a shop. */
function streamTo(shop: Shop, terms: Partial<Parameters<typeof PaidStream.open>[2]> = {}): Promise<PaidStream> {
  return PaidStream.open(ledger, payer, { payee: shop.wallet.account, ...terms })
}

async function pay(shop: Shop, stream: PaidStream, position: number, { window = false, patch = {} }: { window?: boolean; patch?: object } = {}): Promise<PaidAnswer> {
  const answer = await payOnce(client, shop.url, shop.terms, { ...stream.payload(position, { window }), ...patch })
  if (answer.status === 200) stream.accepted(position)
  return answer
}

async function expectPaid(answer: Promise<PaidAnswer>): Promise<void> {
  const { status, code } = await answer
  expect([status, code]).toEqual([200, undefined])
}

async function expectRefused(answer: Promise<PaidAnswer>, code: string): Promise<PaidAnswer> {
  const got = await answer
  const body = JSON.parse(got.body) as { error: string; code?: string; accepts?: unknown }
  if (got.status === 400) {
    expect([body.code, got.settlement]).toEqual([code, undefined])
    return got
  }
  expect([got.status, got.code]).toEqual([402, code])
  expect(isCode(got.code) && CODES[got.code].status).toBe(402)
  expect(got.settlement).toMatchObject({ success: false, transaction: '', network: networkOf(node.chain) })
  expect(body.error).toBe(got.settlement?.errorReason)
  expect(body.accepts).toHaveLength(2)
  return got
}

describe('sion x402 serve --streams', () => {
  it('says what it sells in the words of the reference, and offers both schemes', async () => {
    const network = networkOf(node.chain)
    const { account } = strict.wallet
    expect(strict.line).toBe(
      `selling ${strict.url} at 0.001 USD per request, paid to ${account.slice(0, 8)} on ${network} (exact transfers, or streams settled in batches)`,
    )
    const { accepts } = await quoteOf(client, strict.url)
    expect(accepts.map(({ scheme }) => scheme)).toEqual(['exact', 'stream'])
    expect(accepts[1]).toEqual({
      scheme: 'stream',
      network,
      asset: 'USD',
      amount: '1000',
      payTo: account,
      maxTimeoutSeconds: 300,
      extra: { chain: node.chain, decimals: 6, margin: 10 },
    })
    expect(windowed.terms.extra).toEqual({ chain: node.chain, decimals: 6, margin: 10, window: 32 })
  })

  it('takes a payment once, and says so and where it stands', async () => {
    const stream = await streamTo(strict)
    const network = networkOf(node.chain)
    const first = await pay(strict, stream, 1)
    expect([first.status, first.body]).toEqual([200, '{"gpu_hour_usd":1.95}'])
    expect(first.headers['cache-control']).toBe('private')
    expect(first.settlement).toEqual({
      success: true,
      payer: payer.account,
      transaction: '',
      network,
      extensions: { sion: { stream: stream.id, position: 1 } },
    })

    const replay = await expectRefused(pay(strict, stream, 1), 'wrong_position')
    expect(replay.settlement?.errorReason).toBe('expected the element at position 2, not 1')
    const ahead = await expectRefused(pay(strict, stream, 3), 'wrong_position')
    expect(ahead.settlement).toEqual({
      success: false,
      errorReason: 'expected the element at position 2, not 3',
      transaction: '',
      network,
      extensions: { sion: { stream: stream.id, position: 1, code: 'wrong_position' } },
    })
    expect(ahead.headers['cache-control']).toBe('no-store')
    await expectPaid(pay(strict, stream, 2))
  })

  it('takes prices of several steps, and only whole steps', async () => {
    const half = await streamTo(strict, { step: 500n })
    const wrong = await expectRefused(pay(strict, half, 1), 'wrong_position')
    expect(wrong.settlement?.errorReason).toBe('expected the element at position 2, not 1')
    for (const position of [2, 4, 6]) await expectPaid(pay(strict, half, position))
    await expectRefused(pay(strict, half, 7), 'wrong_position')

    const third = await streamTo(strict, { step: 300n })
    await expectRefused(pay(strict, third, 1), 'price_not_whole_steps')
    const fine = await streamTo(strict, { step: 1n, length: 3_000 })
    for (const position of [1_000, 2_000, 3_000]) await expectPaid(pay(strict, fine, position))
    await expectRefused(pay(strict, fine, 3_000, { patch: { position: 4_000 } }), 'past_end')
  })

  it('takes 200 payments one after the other, past checkpoints with their jumps', async () => {
    const stream = await streamTo(strict)
    for (let position = 1; position <= 200; position++) await expectPaid(pay(strict, stream, position))
  })

  it('of 64 copies of one element at once serves exactly one', async () => {
    const stream = await streamTo(strict)
    const answers = await Promise.all(Array.from({ length: 64 }, () => pay(strict, stream, 1)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ status, code }) => status === 402 && code === 'wrong_position')).toHaveLength(63)
    await expectPaid(pay(strict, stream, 2))
  })
})

describe('with --window 32', () => {
  it('has 32 requests of one stream in flight, in any order, without a refusal', async () => {
    const stream = await streamTo(windowed)
    const flying = new Map<number, Promise<void>>()
    let most = 0
    const ask = async (position: number): Promise<void> => {
      await expectPaid(pay(windowed, stream, position, { window: true }))
      flying.delete(position)
    }
    for (let next = 1; next <= 640; most = Math.max(most, flying.size)) {
      const floor = Math.min(next, ...flying.keys()) - 1
      if (next <= floor + 32) flying.set(next, ask(next++))
      else await Promise.race(flying.values())
    }
    await Promise.all(flying.values())
    expect(most).toBe(32)
    // The highest first, and one by one: whatever order the network brings them in.
    const order = Array.from({ length: 32 }, (_, at) => 672 - at)
    await Promise.all(order.map((position) => expectPaid(pay(windowed, stream, position, { window: true }))))
    await expectRefused(pay(windowed, stream, 672, { window: true }), 'already_used')
    await expectPaid(pay(windowed, stream, 673))
  })

  it('of 64 copies of one element at once serves exactly one', async () => {
    const stream = await streamTo(windowed)
    const answers = await Promise.all(Array.from({ length: 64 }, () => pay(windowed, stream, 5, { window: true })))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(answers.filter(({ code }) => code === 'already_used')).toHaveLength(63)
  })

  it('refuses what is past the window and what is used, naming the floor and what is unused above it', async () => {
    const stream = await streamTo(windowed)
    await expectPaid(pay(windowed, stream, 1, { window: true }))
    await expectPaid(pay(windowed, stream, 33, { window: true }))
    await expectPaid(pay(windowed, stream, 4, { window: true }))
    const ahead = await expectRefused(pay(windowed, stream, 34, { window: true }), 'outside_window')
    expect(ahead.sion).toEqual({ stream: stream.id, position: 1, floor: 1, unused: [[2, 3], [5, 32]], code: 'outside_window' })
    const used = await expectRefused(pay(windowed, stream, 4, { window: true }), 'already_used')
    expect(used.sion).toMatchObject({ position: 1, floor: 1, unused: [[2, 3], [5, 32]] })
    // Without opting in, exactly the lowest unused step.
    await expectRefused(pay(windowed, stream, 5), 'wrong_position')
    await expectPaid(pay(windowed, stream, 2))
    await expectPaid(pay(windowed, stream, 3))
    await expectPaid(pay(windowed, stream, 34, { window: true }))
  })
})

describe('a stream that does not do', () => {
  it('pays another payee', async () => {
    await expectRefused(pay(strict, await streamTo(windowed), 1), 'wrong_payee')
  })

  it('does not exist', async () => {
    const stream = await streamTo(strict)
    await expectRefused(pay(strict, stream, 1, { patch: { stream: 'ab'.repeat(32) } }), 'unknown_stream')
    await expectRefused(pay(strict, stream, 1, { patch: { stream: payer.account } }), 'unknown_stream')
  })

  it('is closed, before it was seen', async () => {
    const stream = await streamTo(strict)
    await stream.close(strict.wallet)
    await expectRefused(pay(strict, stream, 1), 'stream_closed')
  })

  it('is used up: its last element is good and there is none after it', async () => {
    const stream = await streamTo(strict, { length: 3 })
    for (const position of [1, 2, 3]) await expectPaid(pay(strict, stream, position))
    await expectRefused(pay(strict, stream, 3, { patch: { position: 4 } }), 'past_end')
    await expectRefused(pay(strict, stream, 3), 'wrong_position')
  })

  it('has an escrow that is short by a step, until it is topped up by that step', async () => {
    const stream = await streamTo(strict, { length: 10, escrow: 2_999n })
    await expectPaid(pay(strict, stream, 1))
    await expectPaid(pay(strict, stream, 2))
    const short = await expectRefused(pay(strict, stream, 3), 'insufficient_funds')
    expect(short.settlement?.errorReason).toBe('the payment brings the stream to 0.003 USD, and its escrow is 0.002999 USD')
    await stream.topUp(1n)
    // What the desk last read of the ledger may be 200 ms old.
    await eventually(async () => (await pay(strict, stream, 3)).status, 200)
    await expectRefused(pay(strict, stream, 4), 'insufficient_funds')
  })

  it('ends within the margin: exactly at it is good, one Pulse less is refused, and a top-up of time is taken', async () => {
    const latest = async (): Promise<number> => (await ledger.client.latest()).header.number
    // Its opening makes one Pulse more.
    const stream = await streamTo(strict, { lastPulse: (await latest()) + 11 })
    expect((await stream.record()).lastPulse - (await latest())).toBe(10)
    await expectPaid(pay(strict, stream, 1))
    // The desk asks the ledger again when a Pulse may have passed since it last did, at the soonest after 200 ms.
    const paidAt = performance.now()
    do await fund(ledger, payer.account, 1n)
    while (performance.now() - paidAt < 250)
    const late = await expectRefused(pay(strict, stream, 2), 'stream_expiring')
    expect(late.settlement?.errorReason).toMatch(/^the stream lasts \d more Pulses, and this seller needs 10$/)
    await stream.topUp(0n, (await latest()) + 1_000)
    await eventually(async () => (await pay(strict, stream, 2)).status, 200)
  })
})

describe('a hostile client', () => {
  /** Jumps that are none: a stream of 1,000 has 15 checkpoints. */
  const jumps = (stream: PaidStream): readonly (readonly [string, unknown, string])[] => {
    const { index, path } = jumpJson(stream.chain.jump(64) ?? { index: 0, path: [] })
    return [
      ['a false path', { index, path: [...path.slice(0, -1), 'ab'.repeat(32)] }, 'wrong_jump'],
      ['a path too short', { index, path: path.slice(1) }, 'jump_path_length'],
      ['an empty path', { index, path: [] }, 'jump_path_length'],
      ['a path too long', { index, path: [...path, 'ab'.repeat(32)] }, 'jump_path_length'],
      ['a path of 65 nodes', { index, path: Array.from({ length: 65 }, () => 'ab'.repeat(32)) }, 'invalid_payload'],
      ['a node of 31 bytes', { index, path: [...path.slice(0, -1), 'ab'.repeat(31)] }, 'invalid_jump'],
      ['a checkpoint past the end', { index: 16, path }, 'jump_past_end'],
      ['checkpoint 0', { index: 0, path }, 'invalid_jump'],
      ['checkpoint -1', { index: -1, path }, 'invalid_jump'],
      ['checkpoint 2^53', { index: 2 ** 53, path }, 'invalid_jump'],
      ['another checkpoint', { index: 2, path }, 'jump_index'],
      ['a jump that is null', null, 'invalid_payload'],
      ['a path that is text', { index, path: 'ab' }, 'invalid_payload'],
    ]
  }

  it('is refused by its own code each time, and nothing changes', async () => {
    const stream = await streamTo(strict)
    const other = await streamTo(strict)
    for (let position = 1; position <= 63; position++) await expectPaid(pay(strict, stream, position))
    const value = toHex(stream.chain.reveal(64))
    const table: readonly (readonly [string, object, string])[] = [
      ...[0, -1, 1.5, 2 ** 32, 2 ** 53, 1e300].map((position) => [`position ${position}`, { position }, 'invalid_position'] as const),
      ...['64', null, [64], true].map((position) => [`position ${JSON.stringify(position)}`, { position }, 'invalid_payload'] as const),
      ['position 2^32 - 1', { position: 2 ** 32 - 1 }, 'past_end'],
      ['the last position', { position: 1_000, jump: undefined }, 'wrong_position'],
      ['one behind', { ...stream.payload(63), jump: undefined }, 'wrong_position'],
      ['one ahead', stream.payload(65), 'wrong_position'],
      ['31 bytes', { value: value.slice(2) }, 'invalid_value'],
      ['33 bytes', { value: `${value}00` }, 'invalid_value'],
      ['no bytes', { value: '' }, 'invalid_value'],
      ['upper case', { value: value.toUpperCase() }, 'invalid_payload'],
      ['half a byte', { value: value.slice(1) }, 'invalid_payload'],
      ['a long value', { value: 'ab'.repeat(4_000) }, 'invalid_payload'],
      ['a value that is null', { value: null }, 'invalid_payload'],
      ['the element of another position', { value: toHex(stream.chain.reveal(63)) }, 'wrong_element'],
      ['the element of another stream', { value: toHex(other.chain.reveal(64)) }, 'wrong_element'],
      ['no element of any', { value: toHex(randomBytes(32)) }, 'wrong_element'],
      ['another stream', { stream: other.id }, 'wrong_position'],
      ['a stream that is no id', { stream: 'ab' }, 'invalid_payload'],
      ['a window that is 1', { window: 1 }, 'invalid_payload'],
      ['no jump past a checkpoint', { jump: undefined }, 'jump_due'],
      ...jumps(stream).map(([name, jump, code]) => [name, { jump }, code] as const),
    ]
    for (const [name, patch, code] of table) {
      const got = await pay(strict, stream, 64, { patch })
      expect([name, got.status]).toEqual([name, code === 'invalid_payload' ? 400 : 402])
      await expectRefused(Promise.resolve(got), code)
    }
    for (const payload of [null, [], 'text', {}, { stream: stream.id }]) {
      await expectRefused(payOnce(client, strict.url, strict.terms, payload), 'invalid_payload')
    }
    for (const [patch, code] of [
      [{ payTo: payer.account }, 'invalid_payment_requirements'],
      [{ amount: '1' }, 'invalid_payment_requirements'],
      [{ asset: 'EUR' }, 'invalid_payment_requirements'],
      [{ network: 'sion:00' }, 'invalid_network'],
      [{ scheme: 'streams' }, 'unsupported_scheme'],
      [{ extra: { ...strict.terms.extra, margin: 0 } }, 'invalid_payment_requirements'],
    ] as const) {
      await expectRefused(payOnce(client, strict.url, { ...strict.terms, ...patch }, stream.payload(64)), code)
    }
    await expectPaid(pay(strict, stream, 64))
    await expectPaid(pay(strict, other, 1))
  })
})

describe('settling', () => {
  it('comes with --settle-every unsettled steps', async () => {
    const shop = await openShop('erin', '--settle-every', '20', '--settle-after', '86400')
    const stream = await streamTo(shop)
    for (let position = 1; position <= 19; position++) await expectPaid(pay(shop, stream, position))
    // Nothing is due: the stream is settled when the twentieth is paid, and to that step.
    expect(await stream.settled()).toBe(0)
    await expectPaid(pay(shop, stream, 20))
    await eventually(() => stream.settled(), 20)
    shop.running.kill('SIGINT')
    expect((await shop.running.result).code).toBe(0)
  })

  it('comes --settle-after seconds after the first unsettled payment, for many streams at once', async () => {
    const shop = await openShop('frank', '--settle-after', '2')
    const streams = await Promise.all([1, 2, 3].map(() => streamTo(shop)))
    const balance = async (): Promise<bigint> => {
      const { object } = await ledger.client.object(shop.wallet.account)
      return object?.kind === 'account' ? object.balance : 0n
    }
    const before = await balance()
    const startedAt = performance.now()
    for (const [at, stream] of streams.entries()) {
      for (let position = 1; position <= 3 + at; position++) await expectPaid(pay(shop, stream, position))
    }
    for (const [at, stream] of streams.entries()) await eventually(() => stream.settled(), 3 + at)
    expect(performance.now() - startedAt).toBeGreaterThan(1_900)
    // To the step, less the fee of one transaction, or of two if the last payments took their time.
    const fees = before + 12_000n - (await balance())
    expect(fees).toBeGreaterThan(0n)
    expect(fees).toBeLessThan(3_000n)
    shop.running.kill('SIGINT')
    expect((await shop.running.result).code).toBe(0)
  })

  it('comes at Ctrl-C, before the end, also under load on connections that stay open', async () => {
    const shop = await openShop('grace', '--settle-after', '3600')
    const stream = await streamTo(shop)
    let served = 0
    const loaded = (async () => {
      for (let position = 1; ; position++) {
        const answer = await pay(shop, stream, position).catch(() => undefined)
        if (answer?.status !== 200) return
        served++
        if (served === 20) shop.running.kill('SIGINT')
      }
    })()
    await loaded
    const { code, stderr } = await shop.running.result
    expect([code, stderr.includes('settling what is not')]).toEqual([0, true])
    expect(served).toBeGreaterThanOrEqual(20)
    expect(await stream.settled()).toBe(served)
  })

  it('of a stream that was closed under the seller is given up, loudly, and it is refused from then on', async () => {
    const shop = await openShop('heidi', '--settle-every', '4')
    const stream = await streamTo(shop)
    const honest = await streamTo(shop)
    await expectPaid(pay(shop, stream, 1))
    await stream.close(shop.wallet)
    for (const position of [2, 3, 4]) await expectPaid(pay(shop, stream, position))
    await shop.running.until(/was closed with 4 steps unsettled/)
    await expectRefused(pay(shop, stream, 5), 'stream_closed')
    await expectPaid(pay(shop, honest, 1))
    shop.running.kill('SIGINT')
    expect((await shop.running.result).code).toBe(0)
    expect(await honest.settled()).toBe(1)
  })
})

describe('a handler that fails', () => {
  const script = fileURLToPath(new URL('fixtures/troubled-seller.mjs', import.meta.url))
  let shop: { child: Child; url: string; terms: PaymentRequirements; wallet: Wallet }

  beforeAll(async () => {
    const wallet = devnetWallet('ivan')
    await fund(ledger, wallet.account, 1_000_000n)
    const child = startScript(script, ['ivan'], { SION_NODE: node.url, SION_CHAIN: node.chain, DATA: `${cli.home}/troubled` })
    const url = `${(await child.until(/selling at (\S+)/))[1]}/v1/price`
    shop = { child, url, terms: await streamTermsOf(client, url), wallet }
  })
  afterAll(async () => {
    shop?.child.kill('SIGINT')
    await shop?.child.ended
  })

  it('leaves the same element good, and is not settled', async () => {
    const stream = await PaidStream.open(ledger, payer, { payee: shop.wallet.account })
    const ask = async (position: number, fail?: string): Promise<PaidAnswer> => {
      const header = { 'PAYMENT-SIGNATURE': Buffer.from(JSON.stringify({ x402Version: 2, accepted: shop.terms, payload: stream.payload(position) })).toString('base64') }
      const answer = await client.get(shop.url, { ...header, ...(fail === undefined ? {} : { 'x-fail': fail }) })
      return { ...answer, settlement: undefined, sion: {}, code: answer.headers['payment-response'] }
    }
    expect((await ask(1)).status).toBe(200)
    for (const fail of ['500', 'throw', '503', '599']) {
      const failed = await ask(2, fail)
      expect([fail, failed.status, failed.code]).toEqual([fail, fail === 'throw' ? 500 : Number(fail), undefined])
    }
    expect((await ask(2)).status).toBe(200)
    // Below 500 the handler has answered, whatever it said.
    expect((await ask(3, '404')).status).toBe(404)
    expect((await ask(3)).status).toBe(402)

    // A client that goes away before it was answered.
    const impatient = new HttpClient(300)
    await expect(impatient.get(shop.url, { 'x-fail': 'hang', ...headerOf(stream, 4) })).rejects.toThrow('no answer')
    await eventually(async () => (await ask(4)).status, 200)
    impatient.close()
    shop.child.kill('SIGINT')
    expect(await shop.child.ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/stopped\n$/) })
    expect(await stream.settled()).toBe(4)
  })

  function headerOf(stream: PaidStream, position: number): Record<string, string> {
    const text = JSON.stringify({ x402Version: 2, accepted: shop.terms, payload: stream.payload(position) })
    return { 'PAYMENT-SIGNATURE': Buffer.from(text).toString('base64') }
  }
})
