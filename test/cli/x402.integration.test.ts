import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { get } from 'node:http'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { Cli, type RunningCli } from '../support/cli.js'
import { expressSeller, startMarket, type Market } from '../support/market.js'
import { paymentFor, refusalIn } from '../support/payments.js'

/** `sion x402 serve` and `fetch` as processes, beside a devnet in this one. */
let market: Market
let cli: Cli
const running: RunningCli[] = []

beforeAll(async () => {
  market = await startMarket()
  cli = await Cli.create({ SION_NODE: market.node.url, SION_CHAIN: market.node.chain })
  market.defer(() => cli.remove())
  const shown = await cli.run('faucet', 'dana', '50')
  expect(shown.code).toBe(0)
})
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill('SIGKILL')
    await child.result
  }
})
afterAll(() => market.stop())

async function start(pattern: RegExp, ...args: string[]): Promise<RunningCli & { url: string }> {
  const child = cli.start(...args)
  running.push(child)
  const [, url = ''] = await child.until(pattern)
  return { ...child, url }
}

const serve = (...args: string[]) => start(/^selling (http:\S+) /m, 'x402', 'serve', 'carol', '--listen', '127.0.0.1:0', ...args)

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

/** Ids and what follows from them are this run's: the rest must be the page's, to the letter. */
function normalised(text: string): string {
  return text
    .replaceAll(market.node.chain, '<chain>')
    .replaceAll(market.node.network, '<network>')
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:8402')
    .replace(/paid to [0-9a-f]{8} /g, 'paid to <payee8> ')
    .replace(/USD to [0-9a-f]{64} /g, 'USD to <payee> ')
    .replace(/"payTo":"[0-9a-f]{64}"/g, '"payTo":"<payee>"')
    .replace(/transaction [0-9a-f]{64}/g, 'transaction <digest>')
    .replace(/"nonce":"[0-9a-f]{32}"/g, '"nonce":"<nonce>"')
    .replace(/x402:[0-9a-f]{32}/g, 'x402:<nonce>')
}

describe('the transcript of the reference page', () => {
  it('can be replayed with these commands', async () => {
    const seller = await serve('--price', '0.25')
    const { url } = seller

    const [status, headers, body] = await new Promise<[string, Record<string, unknown>, string]>((resolve, reject) => {
      get(url, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (part: string) => (text += part))
        response.on('end', () => resolve([`${response.statusCode} ${response.statusMessage}`, response.headers, text]))
      }).on('error', reject)
    })
    expect(status).toBe('402 Payment Required')
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'content-length': String(body.length), 'cache-control': 'no-store' })
    expect(Buffer.from(String(headers['payment-required']), 'base64').toString()).toBe(body)
    expect(normalised(body)).toBe(
      '{"x402Version":2,"resource":{"url":"/v1/resource","description":"/v1/resource, 0.25 USD per request","mimeType":"application/json"},"accepts":[{"scheme":"exact","network":"<network>","asset":"USD","amount":"250000","payTo":"<payee>","maxTimeoutSeconds":300,"extra":{"chain":"<chain>","decimals":6,"nonce":"<nonce>","purpose":"x402:<nonce>"}}]}',
    )

    const bought = await cli.run('x402', 'fetch', url, '--wallet', 'dana', '--max', '1', '--chain', market.node.chain)
    expect({ ...bought, stdout: normalised(bought.stdout) }).toEqual({
      code: 0,
      signal: null,
      stderr: '',
      stdout: ['402 Payment Required: 0.25 USD to <payee> on <network> (exact)', 'paid: transaction <digest> settled and verified by the server', '200 {"paid":true}', ''].join('\n'),
    })

    expect(await cli.run('x402', 'fetch', url, '--wallet', 'dana', '--max', '0.1', '--chain', market.node.chain)).toEqual({
      code: 3,
      signal: null,
      stdout: '',
      stderr: 'error: the server asks 0.25 USD, more than the 0.1 USD this client may pay\n',
    })

    // The page's refusal is of a charter's bucket; here the wallet is empty.
    const refused = await cli.run('x402', 'fetch', url, '--wallet', 'emptyhanded')
    expect([refused.code, refused.stderr]).toEqual([4, ''])
    const lines = normalised(refused.stdout).split('\n')
    expect(lines[0]).toBe('402 Payment Required: 0.25 USD to <payee> on <network> (exact)')
    expect(lines[1]).toMatch(/^payment refused: the ledger refused the payment: insufficient balance: [0-9a-f]{8} has 0 USD, the payment and its fee need 0\.2511 USD$/)
    const reason = lines[1]?.replace('payment refused: ', '')
    expect(lines[2]?.startsWith(`402 {"x402Version":2,"error":"${reason}","resource":{"url":"/v1/resource",`)).toBe(true)

    seller.kill('SIGINT')
    const { code, stdout } = await seller.result
    expect(code).toBe(0)
    expect(normalised(stdout)).toBe('selling http://127.0.0.1:8402/v1/resource at 0.25 USD per request, paid to <payee8> on <network>\n')
  })
})

describe('sion x402 serve', () => {
  it('sells at its own path, price and body, and nothing else', async () => {
    const { url } = await serve('--path', '/v1/price', '--price', '0.001', '--body', 'hello')
    expect(url.endsWith('/v1/price')).toBe(true)
    const [first, second] = [await cli.run('x402', 'fetch', url, '--wallet', 'dana', '--count', '2'), await fetch(url.replace('/v1/price', '/other'))]
    expect(first.code).toBe(0)
    expect(first.stdout.match(/^200 hello$/gm)).toHaveLength(2)
    expect(first.stdout.match(/^paid: transaction [0-9a-f]{64} settled and verified by the server$/gm)).toHaveLength(2)
    expect(second.status).toBe(404)
    expect((await fetch(url, { method: 'POST', body: 'x' })).status).toBe(405)
  })

  it('answers what is under way after Ctrl-C, takes nothing new, and ends with 0', async () => {
    const seller = await serve()
    const buyer = await market.buyer()
    const payment = await paymentFor(market, buyer, seller.url)
    market.node.pause()
    const answer = fetch(seller.url, { headers: payment.headers })
    // Connections that only wait must not hold up the end.
    await fetch(seller.url)
    seller.kill('SIGINT')
    await seller.until(/^stopping: answering what is under way/m)
    await expect.poll(() => fetch(seller.url).then(() => 'answered', () => 'refused')).toBe('refused')
    market.node.resume()
    const response = await answer
    expect([response.status, await response.text()]).toEqual([200, '{"paid":true}'])
    const answered = performance.now()
    expect(await seller.result).toMatchObject({ code: 0, signal: null })
    expect(performance.now() - answered).toBeLessThan(2_000)
  })

  it('forgets neither a spent quote nor a claimed one when it is started again', async () => {
    const port = await freePort()
    const first = await serve('--listen', `127.0.0.1:${port}`)
    const buyer = await market.buyer()
    const spent = await paymentFor(market, buyer, first.url)
    expect((await fetch(first.url, { headers: spent.headers })).status).toBe(200)

    const claimed = await paymentFor(market, buyer, first.url)
    market.node.pause()
    const lost = fetch(first.url, { headers: claimed.headers }).then(() => 'answered', () => 'lost')
    await expect.poll(() => fetch(first.url).then(({ status }) => status)).toBe(402)
    first.kill('SIGKILL')
    expect(await lost).toBe('lost')
    await first.result
    market.node.resume()

    const second = await serve('--listen', `127.0.0.1:${port}`)
    const replay = await fetch(second.url, { headers: spent.headers })
    expect([replay.status, refusalIn(replay)]).toMatchObject([402, { code: 'payment_used' }])
    const served = await fetch(second.url, { headers: claimed.headers })
    expect([served.status, await served.text()]).toEqual([200, '{"paid":true}'])
    expect(await market.balance(buyer.account)).toBe(10_000_000n - 2n * 251_100n)
  })
})

describe('sion x402 fetch', () => {
  it('prints, with --json, one object: what was asked, paid and answered; lines for people go to stderr', async () => {
    const { url } = await serve()
    const { code, stdout, stderr } = await cli.run('x402', 'fetch', url, '--wallet', 'dana', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({
      body: '{"paid":true}',
      paid: true,
      status: 200,
      settlement: { success: true, network: market.node.network },
      quoted: { x402Version: 2, accepts: [{ scheme: 'exact', amount: '250000' }] },
    })
    expect(stderr).toMatch(/^402 Payment Required: 0\.25 USD/)
  })

  it('killed after it sent its payment and run again: one debit, and the answer', async () => {
    let entered = (): void => {}
    const first = new Promise<void>((resolve) => (entered = resolve))
    let runs = 0
    const shop = await expressSeller(market, (app, charge) => {
      app.get('/x', charge('0.25'), (_, response) => {
        if (++runs === 1) entered()
        else response.json({ runs })
      })
    })
    const buyer = cli.start('x402', 'fetch', `${shop.url}/x`, '--wallet', 'dana')
    await first
    buyer.kill('SIGKILL')
    await buyer.result
    const again = await cli.run('x402', 'fetch', `${shop.url}/x`, '--wallet', 'dana')
    expect(again).toMatchObject({ code: 0, stdout: expect.stringMatching(/^paid: transaction [0-9a-f]{64} .*\n200 \{"runs":2\}\n$/) as unknown })
    expect((await market.received(shop.payee)).payments).toBe(1)
    expect(readdirSync(join(cli.home, 'attempts'))).toEqual([])
  })

  it('run twice at once is two purchases', async () => {
    const { url } = await serve()
    const both = await Promise.all([1, 2].map(() => cli.run('x402', 'fetch', url, '--wallet', 'dana')))
    const digests = both.map(({ stdout }) => /transaction ([0-9a-f]{64})/.exec(stdout)?.[1])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(new Set(digests).size).toBe(2)
  })

  it('pays nothing where nothing is asked, and says with its exit code what became of the call', async () => {
    const url = await market.listen((request, response) => {
      response.statusCode = Number(request.url?.slice(1))
      response.end('as it is')
    })
    expect(await cli.run('x402', 'fetch', `${url}/200`, '--wallet', 'dana')).toMatchObject({ code: 0, stdout: '200 as it is\n', stderr: '' })
    expect(await cli.run('x402', 'fetch', `${url}/404`, '--wallet', 'dana')).toMatchObject({ code: 1, stdout: '404 as it is\n' })
    expect(await cli.run('x402', 'fetch', `${url}/402`, '--wallet', 'dana')).toMatchObject({ code: 4, stdout: '402 as it is\n' })
  })

  it('ends with 5 while the outcome is not known, and goes on with the same payment when it is run again', async () => {
    let open = false
    const payments = new Set<unknown>()
    const shop = await expressSeller(market, (app, charge) => {
      app.get('/x', (request, response, next) => {
        const payment = request.get('payment-signature')
        if (payment !== undefined) payments.add(payment)
        if (payment === undefined || open) next()
        else response.socket?.destroy()
      })
      app.get('/x', charge('0.25'), (_, response) => void response.json({ open }))
    })
    const unknown = await cli.run('x402', 'fetch', `${shop.url}/x`, '--wallet', 'dana', '--patience', '0')
    expect(unknown).toMatchObject({ code: 5, stderr: expect.stringMatching(/^error: transaction [0-9a-f]{64} may have been paid: .*Make the same call again: it sends the same payment\n$/) as unknown })
    open = true
    expect((await cli.run('x402', 'fetch', `${shop.url}/x`, '--wallet', 'dana')).code).toBe(0)
    expect([payments.size, (await market.received(shop.payee)).payments]).toEqual([1, 1])
  })

  it('has an exit code for each way of not paying', async () => {
    const quote = (change: Record<string, unknown>) => Buffer.from(JSON.stringify({ x402Version: 2, resource: { url: '/' }, accepts: [], ...change })).toString('base64')
    const url = await market.listen((request, response) => {
      const header = request.url === '/none' ? quote({}) : 'no base64'
      response.writeHead(402, { 'payment-required': header }).end()
    })
    const nowhere = `http://127.0.0.1:${await freePort()}`
    const cases: [number, RegExp, string[]][] = [
      [3, /^error: the server does not take exact on sion:/, [`${url}/none`]],
      [3, /^error: the server's quote cannot be read: PAYMENT-REQUIRED/, [`${url}/bad`]],
      [1, /^error: http:\/\/127\.0\.0\.1:\d+\/x cannot be reached: .*; nothing was paid$/, [`${nowhere}/x`]],
      [1, /^error: cannot reach the node at http:\/\/127\.0\.0\.1:\d+\/v1\/genesis/, [`${url}/none`, '--node', nowhere]],
    ]
    const results = await Promise.all(cases.map(([, , args]) => cli.run('x402', 'fetch', '--wallet', 'dana', ...args)))
    for (const [i, [code, line]] of cases.entries()) {
      expect(results[i]).toMatchObject({ code, stdout: '' })
      expect(results[i]?.stderr.trimEnd()).toMatch(line)
    }
  })
})

describe('sion facilitator', () => {
  const facilitate = (...args: string[]) =>
    start(/^facilitating exact on sion:[0-9a-f]{32} at (http:\S+)$/m, 'facilitator', '--listen', '127.0.0.1:0', ...args)

  it('settles for a seller in another process, remembers across kill -9, and drains', async () => {
    const port = await freePort()
    const first = await facilitate('--listen', `127.0.0.1:${port}`)
    const seller = await serve('--facilitator', first.url)
    expect((await cli.run('x402', 'fetch', seller.url, '--wallet', 'dana')).code).toBe(0)

    const payer = await market.buyer()
    const payment = await paymentFor(market, payer, seller.url)
    const accepted = JSON.parse(Buffer.from(payment.headers['payment-signature'] ?? '', 'base64').toString()) as { accepted: unknown }
    const settle = async (): Promise<unknown> => {
      const body = JSON.stringify({ x402Version: 2, paymentPayload: accepted, paymentRequirements: accepted.accepted })
      return (await fetch(`http://127.0.0.1:${port}/settle`, { method: 'POST', body, headers: { 'content-type': 'application/json' } })).json()
    }
    expect(await settle()).toMatchObject({ success: true, transaction: payment.digest })
    // Only once this is answered the first answer's delivery is on record.
    expect(await settle()).toMatchObject({ success: false, extensions: { sion: { code: 'payment_used' } } })

    first.kill('SIGKILL')
    await first.result
    const away = await fetch(seller.url, { headers: payment.headers })
    expect([away.status, away.headers.get('retry-after'), refusalIn(away)]).toMatchObject([503, '2', { reason: 'settlement_pending' }])

    const second = await facilitate('--listen', `127.0.0.1:${port}`)
    expect(await settle()).toMatchObject({ success: false, extensions: { sion: { code: 'payment_used' } } })
    expect((await cli.run('x402', 'fetch', seller.url, '--wallet', 'dana')).code).toBe(0)
    second.kill('SIGTERM')
    expect(await second.result).toMatchObject({ code: 0, signal: null })
  })

  it('asks for API keys where it has any, and a seller has one', async () => {
    const key = 'a-key-of-sixteen-or-more'
    const guarded = cli.with({ SION_FACILITATOR_KEYS: `other-key-of-sixteen, ${key}` }).start('facilitator', '--listen', '127.0.0.1:0')
    running.push(guarded)
    const [, url = ''] = await guarded.until(/^facilitating exact on \S+ at (http:\S+)$/m)
    expect((await fetch(`${url}/settle`, { method: 'POST', body: '{}' })).status).toBe(401)
    const seller = cli.with({ SION_FACILITATOR_KEY: key }).start('x402', 'serve', 'carol', '--listen', '127.0.0.1:0', '--facilitator', url)
    running.push(seller)
    const [, shop = ''] = await seller.until(/^selling (http:\S+) /m)
    expect((await cli.run('x402', 'fetch', shop, '--wallet', 'dana')).code).toBe(0)
  })
})

describe('a port that is taken, a node that is away', () => {
  it('ends with one line and 1', async () => {
    const taken = await market.listen((_, response) => void response.end())
    const nowhere = `http://127.0.0.1:${await freePort()}`
    const { host } = new URL(taken)
    const pattern = new RegExp(`^error: cannot listen on ${host}: .*\\n$`)
    const away = /^error: cannot reach the node at .*\n$/
    const cases: [RegExp, string[]][] = [
      [pattern, ['x402', 'serve', 'carol', '--listen', host]],
      [pattern, ['facilitator', '--listen', host]],
      [away, ['x402', 'serve', 'carol', '--listen', '127.0.0.1:0', '--node', nowhere]],
      [away, ['facilitator', '--listen', '127.0.0.1:0', '--node', nowhere]],
    ]
    const results = await Promise.all(cases.map(([, args]) => cli.run(...args)))
    for (const [i, [line]] of cases.entries()) {
      expect(results[i]).toMatchObject({ code: 1, stdout: '' })
      expect(results[i]?.stderr).toMatch(line)
    }
  })
})

describe('bad input', () => {
  const serving = ['x402', 'serve', 'carol']
  const fetching = ['x402', 'fetch', 'http://127.0.0.1:1/']
  const buying = [...fetching, '--wallet', 'dana']
  const cases: [string, string[]][] = [
    ...['abc', '-1', '0', '1e-7', '0.0000001', '1abc', 'NaN', '9'.repeat(30), ''].map((price): [string, string[]] => ['--price', [...serving, '--price', price]]),
    ...['here', '127.0.0.1', '127.0.0.1:99999', ':1', '::1:80'].map((listen): [string, string[]] => ['--listen', [...serving, '--listen', listen]]),
    ...['', 'v1', '//x', '/a?b', '/a b', '/ä'].map((path): [string, string[]] => ['--path', [...serving, '--path', path]]),
    ['--node', [...serving, '--node', 'ftp://x']],
    ['--chain', [...serving, '--chain', 'zz']],
    ['--data', [...serving, '--data', '']],
    ['--redis', [...serving, '--redis', 'http://127.0.0.1']],
    ['--redis', [...serving, '--redis', 'redis://127.0.0.1:1', '--data', 'x']],
    ['--facilitator', [...serving, '--facilitator', 'nowhere']],
    ['PAY_TO', ['x402', 'serve', 'not a name']],
    ['PAY_TO', ['x402', 'serve']],
    ['--frobnicate', [...serving, '--frobnicate']],
    ['URL', ['x402', 'fetch', 'ftp://x/', '--wallet', 'dana']],
    ['URL', ['x402', 'fetch', '/v1/resource', '--wallet', 'dana']],
    ['URL', ['x402', 'fetch']],
    ...['abc', '-1', '1.0000001', ''].map((max): [string, string[]] => ['--max', [...buying, '--max', max]]),
    ...['0', '-1', '1.5', 'many'].map((count): [string, string[]] => ['--count', [...buying, '--count', count]]),
    ['--patience', [...buying, '--patience', '-1']],
    ['--wallet', fetching],
    ['--wallet', [...fetching, '--wallet', '../x']],
    ['--chain', [...buying, '--chain', 'AB'.repeat(32)]],
    ['--listen', ['facilitator', '--listen', 'x']],
    ['--redis', ['facilitator', '--redis', 'x']],
    ['--chain', ['facilitator', '--chain', '1']],
  ]

  it('of any kind: one line that names it, exit code 2, nothing on stdout, before anything is asked of anyone', async () => {
    const deaf = cli.with({ SION_NODE: 'http://127.0.0.1:9', SION_CHAIN: market.node.chain })
    const failures: unknown[] = []
    const queue = cases.entries()
    const worker = async (): Promise<void> => {
      for (const [, [names, args]] of queue) {
        const { code, stdout, stderr } = await deaf.run(...args)
        const named = stderr.startsWith(`error: `) && stderr.includes(names) && stderr.trimEnd().split('\n').length === 1
        if (code !== 2 || stdout !== '' || !named) failures.push({ args, code, stdout, stderr })
      }
    }
    await Promise.all([worker(), worker(), worker()])
    expect(failures).toEqual([])
  })

  it('in SION_FACILITATOR_KEYS too', async () => {
    const { code, stderr } = await cli.with({ SION_FACILITATOR_KEYS: 'short' }).run('facilitator')
    expect([code, stderr]).toEqual([2, 'error: SION_FACILITATOR_KEYS: a key has 16 to 256 characters and no spaces\n'])
  })
})
