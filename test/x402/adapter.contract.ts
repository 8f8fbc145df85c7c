import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { SionError } from '../../src/codec/index.js'
import { askRaw, rawClient, rawRequest, type HttpAnswer } from './support/http.js'
import { CHAIN, pay } from './support/payments.js'
import { codeOf, FILE_BYTES, LARGE_CHUNKS, openShop, quoted, SECRET, settled, type Behaviour, type Framework, type Shop, type ShopSpec } from './support/shop.js'
import { gateOf } from './support/watched-store.js'

/**
 * The rules of a paid route, the same in every framework (docs/x402.md, "What a payment buys"):
 *
 *  1. Nothing of a priced route reaches its handler unpaid, however the request is spelled; a free one passes untouched.
 *  2. What the app decides before the paywall costs nothing: validation, errors, unknown routes.
 *  3. The handler's status decides. Below 500 the payment has bought the answer, whatever it is: 200, 204, 302, 304, 404,
 *     an empty body, a stream, an event stream, an error that the app's error handling answers with 4xx. From 500 on, or
 *     when the handler throws, the same payment is good again, and the answer carries nothing of ours.
 *  4. No byte of the answer leaves before the payment is marked spent. Where that fails, the answer is 503, and neither
 *     content nor headers of the handler leave, apart from its CORS headers and `Vary`.
 *  5. A client that leaves before the first byte left has bought nothing: the same payment is good again. One that leaves
 *     later has bought what it was being sent.
 *  6. A bought answer carries PAYMENT-RESPONSE, and `private` in its Cache-Control in place of `public` and `s-maxage`.
 *     Every 402 carries PAYMENT-REQUIRED and `no-store`, a refusal also PAYMENT-RESPONSE, every 503 Retry-After.
 *  7. Where the app sets Access-Control-Allow-Origin before the paywall, the three headers are exposed, and a preflight that
 *     reaches the paywall is answered 204 with PAYMENT-SIGNATURE allowed. OPTIONS never reaches the handler of a priced route.
 *  8. HEAD is priced as GET. A quote is for the method, path and query as they were spelled.
 */
export function describeAdapter(framework: Framework): void {
  describe(`a paid route in ${framework.name}`, () => {
    let folder: string
    let filePath: string
    const file = Buffer.alloc(FILE_BYTES, 'all work and no play ')
    const shops: Shop[] = []
    const unhandled: unknown[] = []
    const note = (error: unknown): void => void unhandled.push(error)

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'paid-file-'))
      filePath = join(folder, 'file.bin')
      await writeFile(filePath, file)
      process.on('unhandledRejection', note)
      process.on('uncaughtException', note)
    })
    afterEach(async () => {
      for (const shop of shops.splice(0)) await shop.stop()
      expect(unhandled.splice(0)).toEqual([])
    })
    afterAll(async () => {
      process.off('unhandledRejection', note)
      process.off('uncaughtException', note)
      await rm(folder, { recursive: true })
    })

    async function open(spec: ShopSpec): Promise<Shop> {
      const shop = await openShop(framework, spec, filePath)
      shops.push(shop)
      return shop
    }

    const withPayment = (header: string): { headers: Record<string, string> } => ({ headers: { 'PAYMENT-SIGNATURE': header } })

    describe('unpaid', () => {
      it('answers 402 with the quote, and does not run the handler', async () => {
        const shop = await open({ handler: 'json', description: 'weather, now with 🌧️', mimeType: 'text/csv' })
        const answer = await shop.ask()
        expect(answer.status).toBe(402)
        expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json' })
        expect(JSON.parse(answer.body)).toEqual(quoted(answer))
        expect(quoted(answer).resource).toEqual({ url: '/a', description: 'weather, now with 🌧️', mimeType: 'text/csv' })
        expect(answer.headers).not.toHaveProperty('payment-response')
        expect(shop.scene.calls).toBe(0)
      })

      it('of a browser is answered with a page that has the header too', async () => {
        const shop = await open({ handler: 'json' })
        const answer = await shop.ask({ headers: { Accept: 'text/html,*/*;q=0.8' } })
        expect([answer.status, answer.headers['content-type']]).toEqual([402, 'text/html; charset=utf-8'])
        expect(answer.body).toContain('0.25 USD')
        expect(quoted(answer).accepts).toHaveLength(1)
      })

      it('HEAD is answered as GET, without the body', async () => {
        const shop = await open({ handler: 'json' })
        const answer = await shop.ask({ method: 'HEAD' })
        expect([answer.status, answer.body, quoted(answer).accepts.length]).toEqual([402, '', 1])
        expect(shop.scene.calls).toBe(0)
      })

      it('overrides the cache headers that the app set before', async () => {
        const shop = await open({ handler: 'json', presets: true })
        const answer = await shop.ask()
        expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-app': 'shop' })
      })

      it.each([undefined, 'https://api.example.com'])('never takes the host from the request (origin: %s)', async (origin) => {
        const shop = await open({ handler: 'json', seller: origin === undefined ? {} : { origin } })
        for (const headers of [{ Host: 'evil.example' }, { Host: '127.0.0.1', 'X-Forwarded-Host': 'evil.example', Forwarded: 'host=evil.example;proto=https' }]) {
          const answer = await shop.ask({ headers })
          expect(answer.rawHeaders.join('\n') + answer.body).not.toContain('evil')
          expect(quoted(answer).resource.url).toBe(`${origin ?? ''}/a`)
        }
        const raw = await askRaw(shop.port, `GET http://evil.example/a HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n`)
        expect(raw).toMatch(/^HTTP\/1\.1 402/)
        expect(raw).not.toContain('evil')
        expect(raw).toContain(`"url":"${origin ?? ''}/a"`)
      })

      it.each([
        ['bad base64', '%%%', 400],
        ['not a payment', Buffer.from('[]').toString('base64'), 400],
        ['too long', 'A'.repeat(12_289), 400],
      ])('with a payment header that is %s: %s', async (_, header, status) => {
        const shop = await open({ handler: 'json' })
        const answer = await shop.ask(withPayment(header))
        expect([answer.status, shop.scene.calls, shop.facilitator.verified.length]).toEqual([status, 0, 0])
        expect(JSON.parse(answer.body).error).toMatch(/^PAYMENT-SIGNATURE|^payment/)
      })

      it('with two payment headers is refused: it is not clear which to take', async () => {
        const shop = await open({ handler: 'json' })
        const [first, second] = [await shop.pay(), await shop.pay()]
        const raw = await askRaw(
          shop.port,
          `GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\nPAYMENT-SIGNATURE: ${first.header}\r\nPAYMENT-SIGNATURE: ${second.header}\r\n\r\n`,
        )
        expect(raw).toMatch(/^HTTP\/1\.1 400/)
        expect(shop.scene.calls).toBe(0)
      })
    })

    describe('cannot be dodged', () => {
      const spellings = [
        '//a', '/a/', '/a//', '/A', '/a%', '/a%c0', '/a%C0%AF', '/%61', '/%41', '/a%2F', '/%2Fa', '/a%2f', '/./a', '/x/../a', '/a/.', '/a/..', '/%2e/a',
        '/a;x', '/a;x=1', '/a?', '/a?x', '/a#x', '/a%00', '/a%20', '/a.', '/a.json', '/a\\', '\\a', '/\\a', '/a%5C', '/a/?/', '/?/a', '*', 'a', '/á', '/a%E2%80%AE',
      ]
      for (const place of ['route', 'app', 'router'] as const) {
        const prefix = place === 'router' ? '/api' : ''
        const odd = [
          ...spellings.map((spelling) => (spelling.startsWith('/') ? `${prefix}${spelling}` : spelling)),
          ...(place === 'router' ? ['//api/a', '/API/a', '/api//a', '/%61pi/a', '/api%2Fa', '/api/../api/a', '/api;x/a', '/x/..//api/a'] : []),
          `http://evil.example${prefix}/a`,
          `HTTP://evil.example${prefix}/a`,
          `http://user@evil.example${prefix}/a?x`,
          `https://evil.example${prefix}//a`,
          `//evil.example${prefix}/a`,
        ]
        it.each(odd)(`by another spelling of the path (paywall before the ${place}): %s`, async (target) => {
          const shop = await open({ handler: 'json', place })
          for (const method of ['GET', 'HEAD', 'POST', 'get', 'OPTIONS', 'PROPFIND', 'TRACE']) {
            const raw = await askRaw(shop.port, `${method} ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`)
            // A server that cannot read a target may close at once; what it must not do is sell for nothing.
            expect(raw, method).not.toMatch(/sold/)
            if (method !== 'OPTIONS') expect(raw, method).not.toMatch(/^HTTP\/1\.1 [25]\d\d/)
          }
          expect(shop.scene.calls).toBe(0)
        })
      }

      it.each(['HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND', 'TRACE'])('by the method %s', async (method) => {
        for (const place of ['route', 'app', 'router'] as const) {
          const shop = await open({ handler: 'json', place })
          const answer = await shop.ask({ method })
          expect(answer.body).not.toContain('sold')
          expect([402, 404, 405, ...(method === 'OPTIONS' ? [200, 204] : [])]).toContain(answer.status)
          expect(shop.scene.calls).toBe(0)
        }
      })

      it.each(['OPTIONS', 'HEAD', 'GET', 'TRACE', 'get'])('by an overridden method: %s', async (method) => {
        for (const place of ['route', 'app', 'router'] as const) {
          const shop = await open({ handler: 'json', place, overrides: true })
          for (const sent of ['POST', 'GET']) {
            const answer = await shop.ask({ method: sent, headers: { 'X-HTTP-Method-Override': method } })
            expect(answer.body).not.toContain('sold')
          }
          expect(shop.scene.calls).toBe(0)
        }
      })

      it('by a payment for another spelling, query or method of the same route', async () => {
        const shop = await open({ handler: 'json', place: 'app' })
        const { header } = await shop.pay({ path: '/a?x=1' })
        for (const path of ['/a', '/a?x=2', '/a?x=1&', '/a?X=1', '//a?x=1']) {
          const answer = await shop.ask({ path, ...withPayment(header) })
          expect([answer.status, codeOf(answer)]).toEqual([402, 'quote_unknown'])
        }
        expect(codeOf(await shop.ask({ path: '/a?x=1', method: 'POST', ...withPayment(header) }))).toBe('quote_unknown')
        expect((await shop.ask({ path: '/a?x=1', ...withPayment(header) })).status).toBe(200)
        expect(shop.scene.calls).toBe(1)
      })
    })

    describe('stands where the app puts it', () => {
      it('after the app’s own validation: a bad request costs nothing', async () => {
        const shop = await open({ handler: 'json', validates: true })
        const { header } = await shop.pay({ path: '/a?bad' }).catch(() => shop.pay())
        const bad = await shop.ask({ path: '/a?bad', ...withPayment(header) })
        expect([bad.status, bad.body]).toEqual([400, 'bad input'])
        expect(shop.facilitator.verified).toHaveLength(0)
        expect((await shop.ask(withPayment(header))).status).toBe(200)
      })

      it('before a whole router, under the path that the client asked for', async () => {
        const shop = await open({ handler: 'json', place: 'router' })
        expect(quoted(await shop.ask()).resource.url).toBe('/api/a')
        const bought = await shop.buy()
        expect([bought.status, bought.body]).toEqual([200, '{"sold":true}'])
        expect((await shop.ask({ path: '/other' })).status).toBe(404)
      })

      it('with a price computed from the request, and free where that says so', async () => {
        const shop = await open({ handler: 'json', price: async (header) => header('x-price') ?? 'free' })
        const dear = await shop.ask({ headers: { 'X-Price': '12.5' } })
        expect([dear.status, quoted(dear).accepts[0]?.amount]).toEqual([402, '12500000'])
        const free = await shop.ask()
        expect([free.status, free.body]).toEqual([200, '{"sold":true}'])
        expect(free.headers).not.toHaveProperty('payment-response')
        expect(free.headers).not.toHaveProperty('cache-control')
        const { header } = pay(quoted(dear))
        const cheaper = await shop.ask({ headers: { 'X-Price': '12.4', 'PAYMENT-SIGNATURE': header } })
        expect([cheaper.status, codeOf(cheaper)]).toEqual([402, 'invalid_payment_requirements'])
        expect((await shop.ask({ headers: { 'X-Price': '12.5', 'PAYMENT-SIGNATURE': header } })).status).toBe(200)
      })

      it('free: passes untouched', async () => {
        const shop = await open({ handler: 'headers', price: 'free' })
        const answer = await shop.ask(withPayment('nonsense'))
        expect([answer.status, answer.body]).toEqual([200, SECRET])
        expect(answer.headers).toMatchObject({ 'cache-control': 'public, max-age=60', etag: '"secret"' })
      })

      it.each(['throws', '0.1 USD', '0', ''])('with a price that is none (%s): the app’s error handling answers, not the handler', async (price) => {
        const shop = await open({
          handler: 'json',
          price: () => {
            if (price === 'throws') throw new Error('no tariff')
            return price
          },
        })
        const answer = await shop.ask()
        expect([answer.status, shop.scene.calls]).toEqual([500, 0])
        expect(JSON.parse(answer.body).handled).toMatch(price === 'throws' ? /no tariff/ : /^price: /)
      })
    })

    describe('paid', () => {
      const bought: [Behaviour, number, string | RegExp, Record<string, unknown>][] = [
        ['json', 200, '{"sold":true}', { 'cache-control': 'private', 'content-type': expect.stringMatching(/^application\/json/) }],
        ['created', 201, SECRET, { 'cache-control': 'private' }],
        ['empty', 200, '', { 'cache-control': 'private' }],
        ['no-content', 204, '', { 'cache-control': 'private' }],
        ['not-modified', 304, '', { 'cache-control': 'private' }],
        ['redirect', 302, /^/, { location: '/elsewhere', 'cache-control': 'private' }],
        ['not-found', 404, 'no such thing', { 'cache-control': 'private' }],
        ['invalid', 400, 'bad input', { 'cache-control': 'private' }],
        ['throws-422', 422, '{"handled":"not like this"}', { 'cache-control': 'private' }],
        ['chunks', 200, 'one two three', { 'cache-control': 'private', 'transfer-encoding': 'chunked' }],
        ['headers', 200, SECRET, { 'cache-control': 'private, max-age=60', etag: '"secret"', 'content-length': String(SECRET.length), 'set-cookie': ['a=1; Path=/', 'b=2; Path=/'] }],
      ]
      it.each(bought)('a handler that does “%s” is paid for: %i', async (handler, status, body, headers) => {
        const shop = await open({ handler })
        const { header, digest } = await shop.pay()
        const answer = await shop.ask(withPayment(header))
        expect(answer.status).toBe(status)
        expect(answer.body).toMatch(body)
        expect(answer.headers).toMatchObject(headers)
        expect(settled(answer)).toMatchObject({ success: true, transaction: digest, network: `sion:${CHAIN.slice(0, 32)}` })
        const again = await shop.ask(withPayment(header))
        expect([again.status, codeOf(again), quoted(again).accepts.length, again.headers['cache-control']]).toEqual([402, 'payment_used', 1, 'no-store'])
        expect(shop.scene.calls).toBe(1)
        expect(shop.facilitator.settled).toHaveLength(1)
      })

      it.each<[Behaviour, number, string]>([
        ['server-error', 503, 'overloaded'],
        ['throws', 500, '{"handled":"thrown"}'],
        ['rejects', 500, '{"handled":"rejected"}'],
      ])('a handler that does “%s” costs nothing: %i from the app, and the same payment is good again', async (failing, status, body) => {
        const shop = await open({ handler: (call) => (call <= 2 ? failing : 'json') })
        const { header } = await shop.pay()
        for (let attempt = 1; attempt <= 2; attempt++) {
          const failed = await shop.ask(withPayment(header))
          expect([failed.status, failed.body]).toEqual([status, body])
          for (const ours of ['payment-response', 'payment-required', 'cache-control']) expect(failed.headers).not.toHaveProperty(ours)
        }
        const answer = await shop.ask(withPayment(header))
        expect([answer.status, answer.body, settled(answer).success]).toEqual([200, '{"sold":true}', true])
      })

      it('HEAD buys the head, by a quote for either', async () => {
        const shop = await open({ handler: 'headers' })
        const { header } = await shop.pay({ method: 'GET' })
        const answer = await shop.ask({ method: 'HEAD', ...withPayment(header) })
        expect([answer.status, answer.body]).toEqual([200, ''])
        expect(answer.headers).toMatchObject({ etag: '"secret"', 'cache-control': 'private, max-age=60' })
        expect(settled(answer).success).toBe(true)
        expect(codeOf(await shop.ask(withPayment(header)))).toBe('payment_used')
      })

      it('a file arrives whole, by whatever way it is sent', async () => {
        const shop = await open({ handler: 'file' })
        for (const path of ['/a', '/a?pipe']) {
          const answer = await shop.buy({ path })
          expect([answer.status, digestOf(answer.body), settled(answer).success]).toEqual([200, digestOf(file.toString()), true])
        }
      })

      it('an event stream flows as it is written', async () => {
        const shop = await open({ handler: 'events' })
        const { header } = await shop.pay()
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', ...withPayment(header) }))
        await client.until(/data: one/)
        expect(client.received()).toMatch(/text\/event-stream/)
        expect(client.received()).toMatch(/payment-response: /i)
        expect(client.received()).not.toContain('data: two')
        shop.scene.hold.open()
        await client.until(/data: two/)
        client.socket.destroy()
      })

      it('a hundred megabytes are made no faster than a slow client reads them, before and after the payment is spent', async () => {
        const shop = await open({ handler: 'large' })
        const { header } = await shop.pay()
        const spending = gateOf()
        shop.store.beforeSpend = spending.wait
        const client = request({ host: '127.0.0.1', port: shop.port, path: '/a', agent: false, ...withPayment(header) })
        client.end()
        await spending.reached
        await standstill(() => shop.scene.made)
        expect(shop.scene.made).toBeLessThan(10)
        spending.open()
        const [response] = (await once(client, 'response')) as [IncomingMessage]
        response.pause()
        await standstill(() => shop.scene.made)
        // What the kernel's socket buffers take is a few megabytes.
        expect(shop.scene.made * 65_536).toBeLessThan(32 * 1024 * 1024)
        let bytes = 0
        for await (const chunk of response) bytes += (chunk as Buffer).length
        expect(bytes).toBe(LARGE_CHUNKS * 65_536)
        expect(response.headers['payment-response']).toBeDefined()
      })

      it('connections are used again, paid and unpaid in turn', async () => {
        const shop = await open({ handler: 'json' })
        const client = rawClient(shop.port)
        for (let turn = 1; turn <= 5; turn++) {
          const { header } = await shop.pay()
          client.socket.write(rawRequest({ path: '/a' }))
          await client.until(new RegExp(`(HTTP/1.1 402[^]*){${turn}}`))
          client.socket.write(rawRequest({ path: '/a', ...withPayment(header) }))
          await client.until(new RegExp(`("sold":true[^]*){${turn}}`))
        }
        expect(client.received().match(/HTTP\/1\.1 200/g)).toHaveLength(5)
        client.socket.destroy()
      })

      it('of which fifty copies come at once runs the handler once', async () => {
        const shop = await open({ handler: 'waits' })
        const { header } = await shop.pay()
        const asked = Array.from({ length: 50 }, () => shop.ask(withPayment(header)))
        await shop.scene.hold.reached
        shop.scene.hold.open()
        const answers = await Promise.all(asked)
        expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
        expect(answers.filter((answer) => answer.status === 402 && codeOf(answer) === 'payment_used')).toHaveLength(49)
        expect([shop.scene.calls, shop.facilitator.settled.length]).toEqual([1, 1])
      })

      it('while the ledger is slow: the outcome is unknown, 503, and the same payment is served when it is known', async () => {
        const shop = await open({ handler: 'json' })
        const { header } = await shop.pay()
        shop.facilitator.onSettle = async () => ({ success: false, errorReason: 'settlement_pending', transaction: '', network: 'sion:ab' })
        const pending = await shop.ask(withPayment(header))
        expect([pending.status, pending.headers['retry-after'], settled(pending).errorReason, shop.scene.calls]).toEqual([503, '2', 'settlement_pending', 0])
        expect(pending.headers).not.toHaveProperty('payment-required')
        shop.facilitator.onSettle = undefined
        expect((await shop.ask(withPayment(header))).status).toBe(200)
      })
    })

    describe('keeps its answer until the payment is spent', () => {
      const everything: Behaviour[] = ['json', 'created', 'empty', 'no-content', 'not-modified', 'redirect', 'not-found', 'chunks', 'events', 'file', 'headers']
      it.each(everything)('“%s”: no byte leaves before', async (handler) => {
        const shop = await open({ handler })
        const { header } = await shop.pay()
        const spending = gateOf()
        shop.store.beforeSpend = spending.wait
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', headers: { 'PAYMENT-SIGNATURE': header, Connection: 'close' } }))
        await spending.reached
        // Whole round trips on other connections: what was to leave would have left.
        for (let trip = 0; trip < 3; trip++) await shop.ask()
        expect(client.received()).toBe('')
        spending.open()
        shop.scene.hold.open()
        await client.until(/^HTTP\/1\.1 [234]\d\d[^]*\r\n\r\n/)
        expect(client.received()).toMatch(/payment-response: /i)
        client.socket.destroy()
      })

      it.each(everything)('“%s”: where spending fails, 503, and nothing of the handler’s is in it', async (handler) => {
        const shop = await open({ handler, cors: true })
        const { header } = await shop.pay()
        shop.store.beforeSpend = () => Promise.reject(new SionError('store_unavailable', 'connection refused'))
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', headers: { 'PAYMENT-SIGNATURE': header, Connection: 'close' } }))
        await client.until(/\r\n\r\n[^]*\}/)
        shop.scene.hold.open()
        await shop.deserted()
        const answer = client.received()
        expect(answer).toMatch(/^HTTP\/1\.1 503/)
        expect(answer).toMatch(/retry-after: 2/i)
        expect(answer).toMatch(/cache-control: no-store/i)
        expect(answer).toMatch(/access-control-allow-origin: \*/i)
        expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toMatch(/^\{"x402Version":2,"error":"[^"]*","code":"store_unavailable"\}$/)
        expect(answer).not.toMatch(/sold|set-cookie|etag|location|event-stream|octet|all work|one |max-age|no such thing/i)
        // And it was not bought.
        shop.store.beforeSpend = undefined
        expect((await shop.ask(withPayment(header))).status).not.toBe(402)
        expect(shop.store.spent).toHaveLength(1)
      })

      it('another request has taken the payment over meanwhile: 503, come again', async () => {
        const shop = await open({ handler: 'headers' })
        const { header } = await shop.pay()
        const spend = shop.store.spend
        shop.store.spend = async () => false
        const lost = await shop.ask(withPayment(header))
        expect([lost.status, codeOf(lost)]).toEqual([503, 'settlement_pending'])
        expect(lost.body).not.toContain(SECRET)
        shop.store.spend = spend
      })
    })

    describe('whose client leaves', () => {
      it('before the handler is done: the same payment is good again', async () => {
        const shop = await open({ handler: (call) => (call === 1 ? 'waits' : 'json') })
        const { header } = await shop.pay()
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', ...withPayment(header) }))
        await shop.scene.hold.reached
        client.socket.destroy()
        await shop.store.releasedTimes(1)
        const answer = await shop.ask(withPayment(header))
        expect([answer.status, settled(answer).success]).toEqual([200, true])
        shop.scene.hold.open()
        expect(codeOf(await shop.ask(withPayment(header)))).toBe('payment_used')
      })

      it('while its answer is decided: nothing has left, and the same payment is good again', async () => {
        const shop = await open({ handler: 'json' })
        const { header } = await shop.pay()
        const spending = gateOf()
        shop.store.beforeSpend = spending.wait
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', ...withPayment(header) }))
        await spending.reached
        client.socket.destroy()
        await shop.deserted()
        spending.open()
        await shop.store.releasedTimes(1)
        shop.store.beforeSpend = undefined
        expect((await shop.ask(withPayment(header))).status).toBe(200)
      })

      it('while it is being sent: it has bought what it was being sent', async () => {
        const shop = await open({ handler: 'events' })
        const { header } = await shop.pay()
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', ...withPayment(header) }))
        await client.until(/data: one/)
        client.socket.destroy()
        await shop.deserted()
        shop.scene.hold.open()
        expect(codeOf(await shop.ask(withPayment(header)))).toBe('payment_used')
      })

      it('before its payment is settled: the handler does not run, and the same payment is good', async () => {
        const shop = await open({ handler: 'json' })
        const { header } = await shop.pay()
        const settling = gateOf()
        shop.facilitator.onSettle = async () => {
          await settling.wait()
          shop.facilitator.onSettle = undefined
          return shop.facilitator.settle(shop.facilitator.settled[0]!, shop.facilitator.settled[0]!.accepted)
        }
        const client = rawClient(shop.port)
        client.socket.write(rawRequest({ path: '/a', ...withPayment(header) }))
        await settling.reached
        client.socket.destroy()
        await shop.deserted()
        settling.open()
        await shop.store.releasedTimes(1)
        expect(shop.scene.calls).toBe(0)
        expect((await shop.ask(withPayment(header))).status).toBe(200)
      })
    })

    describe('for browsers', () => {
      const names = (answer: HttpAnswer, header: string): string[] => String(answer.headers[header] ?? '').split(', ')

      it('exposes the three headers beside the app’s own, on every answer', async () => {
        const shop = await open({ handler: 'json', cors: true })
        const unpaid = await shop.ask()
        const bought = await shop.buy()
        const unreadable = await shop.ask(withPayment('%'))
        expect([unpaid.status, bought.status, unreadable.status]).toEqual([402, 200, 400])
        for (const answer of [unpaid, bought, unreadable]) {
          expect(answer.headers['access-control-allow-origin']).toBe('*')
          expect(names(answer, 'access-control-expose-headers')).toEqual(['X-App', 'PAYMENT-REQUIRED', 'PAYMENT-RESPONSE', 'PAYMENT-SIGNATURE'])
        }
      })

      it('sets no CORS header where the app sets none', async () => {
        const shop = await open({ handler: 'json' })
        for (const answer of [await shop.ask(), await shop.buy(), await shop.ask({ method: 'OPTIONS' })]) {
          expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([])
        }
      })

      it.each(['app', 'router'] as const)('answers a preflight that reaches it, free of charge, without the handler (paywall before the %s)', async (place) => {
        const shop = await open({ handler: 'json', cors: true, place })
        const answer = await shop.ask({ method: 'OPTIONS', headers: { Origin: 'https://app.example', 'Access-Control-Request-Method': 'GET' } })
        expect([answer.status, answer.body, shop.scene.calls]).toEqual([204, '', 0])
        expect(names(answer, 'access-control-allow-headers')).toEqual(['Content-Type', 'PAYMENT-SIGNATURE'])
      })
    })

    describe('whose payment system is away', () => {
      it('is closed, not open, and opens by itself when it is back', async () => {
        const shop = await open({ handler: 'json' })
        const { header } = await shop.pay()
        shop.facilitator.onVerify = () => Promise.reject(new SionError('facilitator_unavailable', 'connection refused'))
        const closed = await shop.ask(withPayment(header))
        expect([closed.status, closed.headers['retry-after'], shop.scene.calls]).toEqual([503, '2', 0])
        shop.facilitator.onVerify = undefined
        expect((await shop.ask(withPayment(header))).status).toBe(200)
      })

      it('tells so before it listens, by name, when the facilitator settles on another network', async () => {
        const shop = await open({ handler: 'json' })
        await shop.ready()
        shop.facilitator.onSupported = async () => ({ kinds: [{ x402Version: 2, scheme: 'exact', network: 'eip155:8453' }], extensions: [], signers: {} })
        await expect(shop.ready()).rejects.toThrow(/does not settle exact on sion:c0c0\w+, but exact on eip155:8453/)
      })
    })
  })
}

/** Resolves when a count has stood still for a while: there is no event for what does not happen. */
async function standstill(count: () => number): Promise<void> {
  for (let seen = -1; seen !== count(); ) {
    seen = count()
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
