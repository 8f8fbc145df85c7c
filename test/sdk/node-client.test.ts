import { createServer, type Server } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { InputError, SionError } from '../../src/codec/index.js'
import { httpTransport, type NodeAnswer, type NodeTransport } from '../../src/light/index.js'
import { createNodeClient } from '../../src/sdk/index.js'

const id = 'ab'.repeat(32)
const digest = 'd1'.repeat(32)

function answering(answer: NodeAnswer): NodeTransport & { asked: unknown[] } {
  const asked: unknown[] = []
  return {
    asked,
    get: async (path) => {
      asked.push(path)
      return answer
    },
    post: async (path, body) => {
      asked.push([path, body])
      return answer
    },
  }
}

const clientOf = (status: number, body: unknown) => createNodeClient(answering({ status, body }))
const said = (code: string, message: string, field?: string) => ({ error: { code, message, ...(field === undefined ? {} : { field }) } })

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

async function serve(handler: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(handler ?? (() => {}))
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : ''
}

describe('handing in a transaction', () => {
  it('sends its bytes in base64 and is told the digest', async () => {
    const transport = answering({ status: 202, body: { digest, pulse: 12 } })
    expect(await createNodeClient(transport).submit(Uint8Array.of(1, 2, 3))).toEqual({ kind: 'submitted', digest, pulse: 12 })
    expect(transport.asked).toEqual([['/v1/transactions', { transaction: 'AQID' }]])
  })

  it('is refused with the node’s code and reason on 422', async () => {
    expect(await clientOf(422, said('expired', 'it was valid until Pulse 7')).submit(new Uint8Array())).toEqual({
      kind: 'refused',
      code: 'expired',
      reason: 'it was valid until Pulse 7',
    })
  })

  it('throws where the node says that it took nothing', async () => {
    await expect(clientOf(503, said('chain_halted', 'too few validators run')).submit(new Uint8Array())).rejects.toMatchObject({
      code: 'chain_halted',
      message: 'too few validators run',
    })
    await expect(clientOf(413, said('body_too_large', 'at most 65536')).submit(new Uint8Array())).rejects.toBeInstanceOf(SionError)
    const bad = clientOf(400, said('invalid_input', 'transaction: not base64', 'transaction')).submit(new Uint8Array())
    await expect(bad).rejects.toBeInstanceOf(InputError)
    await expect(bad).rejects.toMatchObject({ field: 'transaction', message: 'transaction: not base64' })
  })

  it.each([
    ['a proxy’s 502', 502, null],
    ['a 503 that is not the node’s', 503, '<html>'],
    ['a node that failed in the middle', 500, said('internal_error', 'its log says why')],
  ])('is unknown after %s', async (_, status, body) => {
    expect(await clientOf(status, body).submit(new Uint8Array())).toMatchObject({ kind: 'unknown' })
  })

  it('was not sent where no connection was made', async () => {
    const url = await serve(() => {})
    servers.splice(0).forEach((server) => server.close())
    await expect(createNodeClient(httpTransport(url)).submit(new Uint8Array())).rejects.toMatchObject({ code: 'node_unreachable' })
  })

  it('is unknown where the connection broke after the bytes had left', async () => {
    const url = await serve((request) => request.once('end', () => request.socket.destroy()).resume())
    expect(await createNodeClient(httpTransport(url)).submit(new Uint8Array(10))).toMatchObject({ kind: 'unknown' })
  })

  it('is unknown where no answer comes in time', async () => {
    const url = await serve(() => {})
    const submission = await createNodeClient(httpTransport(url)).submit(new Uint8Array(10), { timeoutMs: 50 })
    expect(submission).toMatchObject({ kind: 'unknown', reason: expect.stringContaining('50 ms') })
  })

  it.each([{}, null, [], { digest: 'x', pulse: 1 }, { digest, pulse: -1 }, { digest, pulse: '1' }])('takes no answer like %j', async (body) => {
    await expect(clientOf(202, body).submit(new Uint8Array())).resolves.toMatchObject({ kind: 'unknown' })
  })
})

describe('what a node says', () => {
  it('of an account is taken apart', async () => {
    const body = { account: id, balance: '31.2422', dual: false, keys_known: true, pulse: 9, more: 1 }
    expect(await clientOf(200, body).account(id)).toEqual({ account: id, balance: 31_242_200n, dual: false, keysKnown: true, pulse: 9 })
  })

  it.each([
    ['account', { account: digest }],
    ['balance', { balance: 31.2422 }],
    ['balance', { balance: '1e3' }],
    ['dual', { dual: 'no' }],
    ['keys_known', { keys_known: undefined }],
    ['pulse', { pulse: 1.5 }],
  ])('of an account is not taken with a bad %s', async (field, change) => {
    const body = { account: id, balance: '1', dual: false, keys_known: true, pulse: 9, ...change }
    await expect(clientOf(200, body).account(id)).rejects.toMatchObject({ code: 'node_malformed', message: expect.stringContaining(field) })
  })

  it('is an error with its own code where it cannot', async () => {
    await expect(clientOf(404, said('unknown_account', 'abababab is not an account')).account(id)).rejects.toMatchObject({ code: 'unknown_account' })
    await expect(clientOf(404, 'nothing').status()).rejects.toMatchObject({ code: 'node_refused' })
    await expect(clientOf(502, undefined).status()).rejects.toMatchObject({ code: 'node_unavailable' })
    await expect(clientOf(404, said('Not\na code', 'x')).status()).rejects.toMatchObject({ code: 'node_refused' })
  })

  it('of events is a list of them', async () => {
    const event = { event: { Transferred: {} }, pulse: 3, tx: digest }
    const transport = answering({ status: 200, body: [event, { ...event, tx: null, more: 1 }] })
    expect(await createNodeClient(transport).events({ from: 2, limit: 4 })).toEqual([event, { ...event, tx: null }])
    expect(transport.asked).toEqual(['/v1/events?from=2&limit=4'])
    for (const body of [{}, [1], [{ ...event, tx: 'x' }], [{ ...event, event: [] }]]) {
      await expect(clientOf(200, body).events()).rejects.toMatchObject({ code: 'node_malformed' })
    }
  })

  it('of itself needs every field', async () => {
    await expect(clientOf(200, {}).status()).rejects.toMatchObject({ code: 'node_malformed', message: expect.stringContaining('commitment') })
    await expect(clientOf(200, []).status()).rejects.toMatchObject({ code: 'node_malformed' })
  })
})
