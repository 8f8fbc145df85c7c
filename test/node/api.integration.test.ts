import { Agent, request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toBase64 } from '../../src/codec/index.js'
import { digestOf, encodeSigned } from '../../src/ledger/index.js'
import type { ErrorJson, EventJson, ReceiptJson, SubmittedJson } from '../../src/light/node-api.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { Api, newWallet, sign } from './support.js'

let node: DevnetNode
let api: Api
const errors: string[] = []
const log = (line: string): void => void errors.push(line)

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 60_000, logger: { info() {}, warn: log, error: log } })
  api = new Api(node.url, node.chain)
})

afterAll(async () => {
  await node.stop()
  expect(errors).toEqual([])
})

const id = 'a'.repeat(64)

interface RawAnswer {
  status: number
  text: string
  headers: NodeJS.Dict<string | string[]>
}

/** A request as no client library would send it. */
function raw(method: string, path: string, body: string | Buffer = '', headers: Record<string, string> = {}, agent?: Agent): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(node.url, { method, path, headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }))
    })
    asked.on('error', reject).end(body)
  })
}

describe('bad input gets a 400 that names the field', () => {
  const gets: [path: string, field: string][] = [
    ['/v1/accounts/xyz', 'account'],
    [`/v1/accounts/${id.toUpperCase()}`, 'account'],
    [`/v1/accounts/${id}a`, 'account'],
    ['/v1/accounts/%00', 'account'],
    ['/v1/accounts/%E0%A4%A', 'account'],
    ['/v1/accounts/..%2F..%2Fetc', 'account'],
    [`/v1/accounts/${id}?x=1`, 'x'],
    ['/v1/objects/1', 'object'],
    [`/v1/objects/${id}?certificate=no`, 'certificate'],
    ['/v1/status?verbose=1', 'verbose'],
    ['/v1/genesis?__proto__=1', '__proto__'],
    ['/v1/pulses/-1', 'pulse'],
    ['/v1/pulses/1.5', 'pulse'],
    ['/v1/pulses/1e3', 'pulse'],
    ['/v1/pulses/01', 'pulse'],
    ['/v1/pulses/9007199254740992', 'pulse'],
    ['/v1/pulses/99999999999999999999999999', 'pulse'],
    ['/v1/transactions/abc', 'digest'],
    ['/v1/receipts/abc', 'digest'],
    [`/v1/receipts/${id}?wait=61`, 'wait'],
    [`/v1/receipts/${id}?wait=-1`, 'wait'],
    [`/v1/receipts/${id}?wait=`, 'wait'],
    [`/v1/receipts/${id}?wait=NaN`, 'wait'],
    [`/v1/receipts/${id}?wait=1e1`, 'wait'],
    [`/v1/receipts/${id}?wait=1&wait=2`, 'wait'],
    [`/v1/receipts/${id}?certificate=`, 'certificate'],
    [`/v1/receipts/${id}?Wait=1`, 'Wait'],
    ['/v1/events?from=-1', 'from'],
    ['/v1/events?from=x', 'from'],
    ['/v1/events?from=9007199254740991', 'from'],
    ['/v1/events?limit=0', 'limit'],
    ['/v1/events?limit=1001', 'limit'],
    ['/v1/events?wait=61', 'wait'],
  ]
  it.each(gets)('GET %s', async (path, field) => {
    expect(await api.get<ErrorJson>(path)).toMatchObject({ status: 400, body: { error: { code: 'invalid_input', field } } })
  })

  const tx = { transaction: toBase64(new Uint8Array(100)) }
  const posts: [path: string, body: string, field: string][] = [
    ['/v1/transactions', '', 'body'],
    ['/v1/transactions', '{', 'body'],
    ['/v1/transactions', 'null', 'body'],
    ['/v1/transactions', '[]', 'body'],
    ['/v1/transactions', '"x"', 'body'],
    ['/v1/transactions', '['.repeat(60_000), 'body'],
    ['/v1/transactions', '{}', 'transaction'],
    ['/v1/transactions', '{"transaction":null}', 'transaction'],
    ['/v1/transactions', '{"transaction":7}', 'transaction'],
    ['/v1/transactions', '{"transaction":""}', 'transaction'],
    ['/v1/transactions', '{"transaction":"%%%"}', 'transaction'],
    ['/v1/transactions', '{"transaction":"AA A"}', 'transaction'],
    ['/v1/transactions', JSON.stringify(tx), 'transaction'],
    ['/v1/transactions', JSON.stringify({ ...tx, wait: true }), 'wait'],
    ['/v1/transactions', '{"transaction":"AAAA","__proto__":1}', '__proto__'],
    ['/v1/faucet', '{}', 'account'],
    ['/v1/faucet', `{"account":"dana","amount":"1"}`, 'account'],
    ['/v1/faucet', `{"account":["${id}"],"amount":"1"}`, 'account'],
    ['/v1/faucet', `{"account":"${id}"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":1}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"0"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"-1"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"1e3"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"0.0000001"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"1000000.000001"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"${'9'.repeat(30)}"}`, 'amount'],
    ['/v1/faucet', `{"account":"${id}","amount":"1","to":"me"}`, 'to'],
    ['/v1/devnet/validators/4', '{"running":true}', 'validator'],
    ['/v1/devnet/validators/x', '{"running":true}', 'validator'],
    ['/v1/devnet/validators/0', '{"running":"yes"}', 'running'],
    ['/v1/devnet/validators/0', '{}', 'running'],
  ]
  it.each(posts)('POST %s %s', async (path, body, field) => {
    const { status, text } = await raw('POST', path, body)
    expect({ status, error: JSON.parse(text) }).toMatchObject({ status: 400, error: { error: { code: 'invalid_input', field } } })
  })

  it('for bytes that are not a text, and for a transaction with one byte more or less', async () => {
    expect((await raw('POST', '/v1/faucet', Buffer.from([0xff, 0xfe, 0x00]))).status).toBe(400)
    const alice = newWallet()
    const bytes = encodeSigned(await sign(alice.keys, await api.body(alice.id, { kind: 'transfer', to: id, amount: 1n, purpose: '' })))
    for (const wrong of [bytes.subarray(1), bytes.subarray(0, -1), Uint8Array.of(...bytes, 0)]) {
      expect(await api.post('/v1/transactions', { transaction: toBase64(wrong) })).toMatchObject({ status: 400, body: { error: { field: 'transaction' } } })
    }
  })
})

describe('what is not there', () => {
  it.each([['/'], ['/v1'], ['/v2/status'], ['/v1/status/'], ['//v1/status'], ['/v1/accounts'], ['/v1/accounts/'], [`/v1/accounts/${id}/x`], ['/%2e%2e/x']])(
    'GET %s is 404',
    async (path) => {
      const { status, text } = await raw('GET', path)
      expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 404, body: { error: { code: 'unknown_path' } } })
    },
  )

  it('an unknown transaction, receipt, Pulse is 404, each with its code', async () => {
    expect(await api.get(`/v1/transactions/${id}`)).toMatchObject({ status: 404, body: { error: { code: 'unknown_transaction' } } })
    expect(await api.get(`/v1/receipts/${id}`)).toMatchObject({ status: 404, body: { error: { code: 'unknown_transaction' } } })
    expect(await api.get('/v1/pulses/9007199254740991')).toMatchObject({ status: 404, body: { error: { code: 'unknown_pulse' } } })
    expect(await api.get('/v1/pulses/0')).toMatchObject({ status: 404, body: { error: { code: 'unknown_pulse' } } })
  })

  it('an account that nobody paid yet is an empty one', async () => {
    expect((await api.get(`/v1/accounts/${id}`)).body).toEqual({ account: id, balance: '0', dual: false, keys_known: false, pulse: expect.any(Number) })
  })

  it.each([
    ['POST', '/v1/status', 'GET, HEAD'],
    ['DELETE', `/v1/accounts/${id}`, 'GET, HEAD'],
    ['GET', '/v1/faucet', 'POST'],
    ['PUT', '/v1/transactions', 'POST'],
    ['OPTIONS', '/v1/transactions', 'POST'],
    ['GET', '/v1/devnet/validators/0', 'POST'],
  ])('%s %s is 405 and says what is allowed', async (method, path, allowed) => {
    const { status, text, headers } = await raw(method, path, '', { 'content-length': '0' })
    expect({ status, allow: headers['allow'], body: JSON.parse(text) }).toMatchObject({ status: 405, allow: allowed, body: { error: { code: 'wrong_method' } } })
  })
})

describe('a body', () => {
  const over = JSON.stringify({ transaction: 'A'.repeat(256 * 1024) })
  it('over 256 KiB is 413, with its length or in chunks', async () => {
    for (const headers of [{ 'content-length': String(over.length) }, { 'transfer-encoding': 'chunked' }]) {
      const { status, text } = await raw('POST', '/v1/transactions', over, headers)
      expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 413, body: { error: { code: 'body_too_large' } } })
    }
  })

  it('that was too large leaves the connection good for what comes next', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    expect((await raw('POST', '/v1/transactions', over, {}, agent)).status).toBe(413)
    expect((await raw('GET', `/v1/receipts/${id}?wait=0.8`, '', {}, agent)).status).toBe(404)
    agent.destroy()
  })

  it('from a web page is refused, whatever it asks', async () => {
    const { status, text } = await raw('POST', '/v1/devnet/validators/0', '{"running":false}', { origin: 'https://example.com', 'content-type': 'text/plain' })
    expect({ status, body: JSON.parse(text) }).toMatchObject({ status: 403, body: { error: { code: 'cross_origin' } } })
    expect((await api.status()).active_validators).toBe(4)
  })
})

describe('a refused transaction', () => {
  const unpaid = { kind: 'transfer' as const, to: id, amount: 1n, purpose: '' }

  it('is 422 with its code and reason, and 202 is only for what is taken', async () => {
    const alice = newWallet()
    const cases: [ReturnType<typeof api.body>, string, RegExp][] = [
      [api.body(alice.id, unpaid, { chain: id }), 'wrong_chain', /is for chain aaaaaaaa/],
      [api.body(alice.id, unpaid, { validUntil: 0 }), 'expired', /valid until Pulse 0/],
      [api.body(alice.id, unpaid, { validUntil: 1_000_000 }), 'valid_too_long', /1000 Pulses/],
      [api.body(alice.id, unpaid), 'insufficient_balance', /has 0 USD, the payment and its fee need 0\.001101 USD/],
      [api.body(alice.id, { kind: 'setDual', dual: true }), 'insufficient_fee', /has 0 USD, the fee is 0\.001 USD/],
    ]
    for (const [body, code, message] of cases) {
      const { status, body: answer } = await api.submit(await sign(alice.keys, await body))
      expect({ status, answer }).toMatchObject({ status: 422, answer: { error: { code, message: expect.stringMatching(message) } } })
    }
    const withoutKeys = await sign(alice.keys, await api.body(alice.id, unpaid), { withKeys: false })
    expect((await api.submit(withoutKeys)).body.error.code).toBe('unknown_keys')
    const othersKeys = { ...withoutKeys, keys: newWallet().keys.publicKeys }
    expect((await api.submit(othersKeys)).body.error.code).toBe('wrong_keys')
  })
})

describe('waiting for a receipt', () => {
  it('ends with the certification, not with the time', async () => {
    const alice = newWallet()
    const { body } = await api.post<SubmittedJson>('/v1/faucet', { account: alice.id, amount: '1' })
    const answers = await Promise.all(Array.from({ length: 20 }, () => api.get<ReceiptJson>(`/v1/receipts/${body.digest}?wait=60`)))
    for (const answer of answers) expect(answer).toMatchObject({ status: 200, body: { proof: { index: 0, size: 1, path: [] } } })
  })

  it('may begin before the transaction is known', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const tx = await sign(alice.keys, await api.body(alice.id, { kind: 'transfer', to: bob.id, amount: 5n, purpose: '' }))
    const early = api.receipt(digestOf(tx.body), 60)
    await api.get('/v1/status')
    await api.submit(tx)
    expect((await early)?.outcome.kind).toBe('success')
  })

  it('ends with 404 when the time is over', async () => {
    const started = performance.now()
    expect(await api.get(`/v1/receipts/${id}?wait=0.3`)).toMatchObject({ status: 404, body: { error: { code: 'unknown_transaction' } } })
    expect(performance.now() - started).toBeGreaterThanOrEqual(299)
  })

  it('proves each of many in one Pulse, at its own place', async () => {
    const submitted = await Promise.all(Array.from({ length: 7 }, () => api.post<SubmittedJson>('/v1/faucet', { account: newWallet().id, amount: '1' })))
    const answers = await Promise.all(submitted.map(({ body }) => api.get<ReceiptJson>(`/v1/receipts/${body.digest}?wait=60&certificate=0`)))
    const places = answers.map(({ body }) => `${body.pulse.number}:${body.proof.index}`)
    expect(new Set(places).size).toBe(7)
  })
})

describe('events', () => {
  it('come oldest first from a Pulse on, at most as many as asked for', async () => {
    const [first, second] = [await api.fund(newWallet().id, '1'), await api.fund(newWallet().id, '2')]
    const { body } = await api.get<EventJson[]>(`/v1/events?from=${first.pulse}`)
    expect(body.map(({ pulse, tx }) => [pulse, tx])).toEqual([
      [first.pulse, first.digest],
      [second.pulse, second.digest],
    ])
    expect(body[1]?.event).toMatchObject({ Transferred: { outputs: [[expect.any(String), 2_000_000]] } })
    expect((await api.get<EventJson[]>(`/v1/events?from=${first.pulse}&limit=1`)).body).toEqual(body.slice(0, 1))
    expect((await api.get<EventJson[]>(`/v1/events?from=${second.pulse + 1}`)).body).toEqual([])
  })

  it('can be waited for', async () => {
    const { certified_pulse } = await api.status()
    const waiting = api.get<EventJson[]>(`/v1/events?from=${certified_pulse + 1}&wait=60`)
    const { digest } = await api.fund(newWallet().id, '1')
    expect((await waiting).body.map(({ tx }) => tx)).toEqual([digest])
    expect((await api.get<EventJson[]>(`/v1/events?from=9007199254740990&wait=0.2`)).body).toEqual([])
  })
})

describe('the faucet', () => {
  it('gives at most 1,000,000 USD a call, by a transfer that says so', async () => {
    const alice = newWallet()
    await api.fund(alice.id, '1000000')
    expect(await api.balance(alice.id)).toBe(1_000_000_000_000n)
  })

  it('refuses to pay itself', async () => {
    const [faucet] = node.genesis.balances[0] ?? ['']
    expect(await api.post('/v1/faucet', { account: faucet, amount: '1' })).toMatchObject({ status: 400, body: { error: { field: 'account' } } })
  })
})
