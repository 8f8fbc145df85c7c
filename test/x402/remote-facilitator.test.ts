import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { remoteFacilitator } from '../../src/facilitator/remote.js'
import { createSeller } from '../../src/facilitator/seller.js'
import { answerIn, askFor, codeIn, paidIn, quoteIn } from './support/checkout.js'
import { successFor } from './support/fake-facilitator.js'
import { CHAIN, pay, PAYEE, PAYER } from './support/payments.js'
import { watchedStore } from './support/watched-store.js'

type Answers = (request: IncomingMessage, response: ServerResponse, body: unknown) => void

describe('a facilitator behind HTTP', () => {
  const servers: Server[] = []
  afterEach(async () => {
    for (const server of servers.splice(0)) {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  })

  async function serve(answers: Answers): Promise<string> {
    const server = createServer((request, response) => {
      if (request.method === 'GET') answers(request, response, undefined)
      else void json(request).then((body) => answers(request, response, body))
    })
    servers.push(server)
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  const sendJson = (response: ServerResponse, value: unknown, status = 200): void => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
  }

  function shopAt(facilitator: string, settleWaitSeconds = 20) {
    const store = watchedStore()
    const options = { payTo: PAYEE, chain: CHAIN, store, facilitator, facilitatorKey: 'key', settleWaitSeconds }
    const route = createSeller(options, () => ({ verify: () => Promise.resolve(false) })).route<unknown>('0.25')
    const payFor = async () => pay(quoteIn(answerIn(await askFor(route))))
    return { store, route, payFor }
  }

  it('is asked as x402 says, with the key and the name of who asks', async () => {
    const asked: unknown[] = []
    const url = await serve((request, response, body) => {
      asked.push([request.method, request.url, request.headers.authorization, typeof request.headers['idempotency-key'], Object.keys(body as object)])
      sendJson(response, request.url?.endsWith('/verify') === true ? { isValid: true, payer: PAYER, invalidReason: null } : successFor((body as { paymentPayload: never }).paymentPayload))
    })
    const { route, payFor } = shopAt(`${url}/base/`)
    const { header } = await payFor()
    await paidIn(await askFor(route, { payment: header })).finish(200)
    const fields = ['x402Version', 'paymentPayload', 'paymentRequirements']
    expect(asked).toEqual([
      ['POST', '/base/verify', 'Bearer key', 'undefined', fields],
      ['POST', '/base/settle', 'Bearer key', 'string', fields],
    ])
  })

  it.each<[string, Answers]>([
    ['another digest', (_, response, body) => sendJson(response, { ...successFor((body as { paymentPayload: never }).paymentPayload), transaction: 'ad'.repeat(32) })],
    ['another network', (_, response, body) => sendJson(response, { ...successFor((body as { paymentPayload: never }).paymentPayload), network: 'sion:ffff' })],
    ['success as text', (_, response) => sendJson(response, { success: 'true', transaction: 'ad'.repeat(32), network: 'sion:ff' })],
    ['a payer that is an object', (_, response, body) => sendJson(response, { ...successFor((body as { paymentPayload: never }).paymentPayload), payer: {} })],
    ['an array', (_, response) => sendJson(response, [])],
    ['null', (_, response) => sendJson(response, null)],
    ['no JSON', (_, response) => void response.end('<html>')],
    ['500', (_, response) => sendJson(response, { error: 'broken' }, 500)],
    ['401', (_, response) => sendJson(response, { error: 'key' }, 401)],
    ['a redirect', (_, response) => void response.writeHead(307, { Location: '/elsewhere' }).end()],
    ['a broken connection', (request) => void request.socket.destroy()],
    ['half an answer', (request, response) => {
      response.writeHead(200, { 'Content-Length': 1_000 }).write('{"success":true')
      setImmediate(() => request.socket.destroy())
    }],
    ['an answer without end', (_, response) => {
      const more = (): void => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 32)));
      }
      response.on('drain', more)
      more()
    }],
  ])('that answers /settle with %s opens no door: 503, and the same payment is good when it answers well', async (_, lie) => {
    let lying = true
    const url = await serve((request, response, body) => {
      if (request.url === '/verify') sendJson(response, { isValid: true, payer: PAYER })
      else if (lying) lie(request, response, body)
      else sendJson(response, successFor((body as { paymentPayload: never }).paymentPayload))
    })
    const { store, route, payFor } = shopAt(url)
    const { header } = await payFor()
    const answer = answerIn(await askFor(route, { payment: header }))
    expect([answer.status, answer.headers['Retry-After'], store.spent]).toEqual([503, '2', []])
    lying = false
    expect(paidIn(await askFor(route, { payment: header })).kind).toBe('paid')
  })

  it.each<[string, unknown]>([
    ['valid as text', { isValid: 'true' }],
    ['a reason that is an object', { isValid: false, invalidReason: { not: 'text' } }],
    ['nothing', {}],
  ])('that answers /verify with %s is broken, and so is the door closed', async (_, answer) => {
    const url = await serve((_request, response) => sendJson(response, answer))
    const { route, payFor } = shopAt(url)
    const closed = answerIn(await askFor(route, { payment: (await payFor()).header }))
    expect(closed.status).toBe(503)
  })

  it('that hangs is waited for as long as the seller says, and the outcome is unknown then', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/verify') sendJson(response, { isValid: true, payer: PAYER })
    })
    const { store, route, payFor } = shopAt(url, 0.2)
    const { header } = await payFor()
    const asked = performance.now()
    const answer = answerIn(await askFor(route, { payment: header }))
    expect(performance.now() - asked).toBeLessThan(5_000)
    expect([answer.status, codeIn(answer)]).toEqual([503, 'settlement_pending'])
    expect(store.released).toHaveLength(1)
  })

  it('names itself and what it gave, never what it was sent', async () => {
    const url = await serve((_request, response) => sendJson(response, {}, 403))
    const facilitator = remoteFacilitator({ url, apiKey: 'secret-key' })
    await expect(facilitator.supported()).rejects.toMatchObject({
      code: 'facilitator_unavailable',
      message: `the facilitator ${url} gave 403 to /supported: is the API key right?`,
    })
  })

  it('that names no kinds it settles is broken, not one that settles nothing', async () => {
    for (const answer of [{}, { kinds: {} }, { kinds: [null] }, { kinds: ['exact'] }]) {
      const url = await serve((_request, response) => sendJson(response, answer))
      await expect(remoteFacilitator({ url }).supported()).rejects.toMatchObject({ code: 'facilitator_unavailable' })
    }
  })
})
