import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { InputError, toBase64 } from '../../src/codec/index.js'
import { ConflictingCertificates, createLightClient, isNodeAway, type LightClient, type LightClientOptions, type NodeTransport } from '../../src/light/index.js'
import { encodeHeader } from '../../src/pulse/index.js'
import { refuses } from '../support/refusals.js'
import {
  answersOf,
  flipped,
  rememberingVerify,
  signedChain,
  signedPulse,
  testId,
  type Json,
  type SignedChain,
  type SignedPulse,
} from '../support/signed-chain.js'

const account = testId('account')
const objects = new Map([[account, { kind: 'account' as const, balance: 7n, dual: false }]])
const time = 1_700_000_001_000

let chain: SignedChain
let other: SignedChain
let one: SignedPulse
let two: SignedPulse
/** Also Pulse 2, and as well certified: by validators that signed twice. */
let twin: SignedPulse
/** Pulse 2 that does not build on Pulse 1. */
let orphan: SignedPulse
let foreign: SignedPulse

beforeAll(async () => {
  chain = signedChain([40, 30, 20, 10])
  other = signedChain([40, 30, 20, 10], 'other-chain')
  one = await signedPulse(chain, [0, 1], { time }, 3, objects)
  two = await signedPulse(chain, [0, 1], { number: 2, parent: one.hash, time: time + 1_000 }, 1, objects)
  twin = await signedPulse(chain, [0, 1], { number: 2, parent: one.hash, time: time + 1_000, round: 9 }, 0, objects)
  orphan = await signedPulse(chain, [0, 1], { number: 2, parent: testId('elsewhere'), time: time + 1_000 }, 0, objects)
  foreign = await signedPulse(other, [0, 1], { time }, 1, objects)
})

/** A node of answers that a test may change. */
interface Scripted {
  answers: Map<string, Json>
  asked: string[]
  transport: NodeTransport
}

function scripted(of: SignedChain, ...pulses: SignedPulse[]): Scripted {
  const answers = answersOf(of, pulses)
  const asked: string[] = []
  const transport: NodeTransport = {
    async get(path, { signal } = {}) {
      signal?.throwIfAborted()
      asked.push(path)
      await new Promise((resolve) => setImmediate(resolve))
      const body = answers.get(path)
      if (body !== undefined) return { status: 200, body: structuredClone(body) }
      const code = path.startsWith('/v1/pulses') ? 'unknown_pulse' : 'unknown_transaction'
      return { status: 404, body: { error: { code, message: 'there is none' } } }
    },
    async post() {
      throw new Error('a light client posts nothing')
    },
  }
  return { answers, asked, transport }
}

let node: Scripted
let verifier: ReturnType<typeof rememberingVerify>

beforeEach(() => {
  node = scripted(chain, one, two)
  verifier = rememberingVerify()
})

function clientOf({ transport }: Scripted, options: Partial<LightClientOptions> = {}): LightClient {
  return createLightClient({ transport, chain: chain.trust.chain, signatures: verifier, now: () => time + 2_000, ...options })
}

const digestOf = (pulse: SignedPulse, index: number): string => pulse.receipts[index]!.receipt.digest

describe('what an honest node answers', () => {
  it('a receipt, with the header it is proven against and the stake that signed it', async () => {
    const answer = await clientOf(node).receipt(digestOf(one, 1))
    expect(answer).toEqual({
      receipt: one.receipts[1]!.receipt,
      header: one.header,
      headerHash: one.hash,
      chain: chain.trust.chain,
      pinned: true,
      certificate: { signed: 70n, quorum: 67n, total: 100n },
    })
  })

  it('the newest header, one by number, an object, an absence, a body', async () => {
    const client = clientOf(node)
    expect((await client.latest()).header).toEqual(two.header)
    expect((await client.header(1)).header).toEqual(one.header)
    expect(await client.object(account)).toMatchObject({ object: { balance: 7n }, header: { headerHash: two.hash } })
    expect((await client.object(testId('nobody'))).object).toBeUndefined()
    expect(await client.body(digestOf(one, 0))).toEqual(one.receipts[0]!.body)
  })

  it('nothing, where the transaction is unknown: undefined, and an error for a body or a Pulse that is asked for', async () => {
    const client = clientOf(node)
    expect(await client.receipt(testId('unknown'))).toBeUndefined()
    await refuses('unknown_transaction', () => client.body(testId('unknown')))
    await refuses('unknown_pulse', () => client.header(99))
  })

  it('without a pinned chain every answer says so', async () => {
    const client = clientOf(node, { chain: undefined })
    expect((await client.trust()).pinned).toBe(false)
    expect((await client.receipt(digestOf(one, 0)))?.pinned).toBe(false)
    expect((await client.latest()).pinned).toBe(false)
  })
})

describe('another chain', () => {
  it('is refused, however well it is signed', async () => {
    await refuses('wrong_chain', () => clientOf(scripted(other, foreign)).receipt(digestOf(foreign, 0)))
  })

  it('behind the right genesis is refused, for headers, receipts and objects', async () => {
    node.answers = answersOf(other, [foreign])
    node.answers.set('/v1/genesis', answersOf(chain, []).get('/v1/genesis')!)
    const lying = scripted(chain)
    lying.answers.clear()
    for (const [path, answer] of node.answers) lying.answers.set(path, answer)
    await refuses('wrong_chain', () => clientOf(lying).latest())
    await refuses('wrong_chain', () => clientOf(lying).receipt(digestOf(foreign, 0)))
    await refuses('wrong_chain', () => clientOf(lying).object(account))
  })

  it('by name is refused: a node that calls its chain by an identity that its genesis has not', async () => {
    node.answers.set('/v1/genesis', { chain: other.trust.chain, genesis: toBase64(chain.genesisBytes) })
    await refuses('wrong_chain', () => clientOf(node).trust())
    await refuses('wrong_chain', () => clientOf(node, { chain: undefined }).trust())
  })
})

describe('an answer to another question', () => {
  it('another Pulse than was asked for is refused, whichever number the node writes on it', async () => {
    const answer = node.answers.get('/v1/pulses/1') as { [name: string]: Json }
    node.answers.set('/v1/pulses/2', answer)
    await refuses('wrong_number', () => clientOf(node).header(2))
    node.answers.set('/v1/pulses/2', { ...answer, number: 2 })
    await refuses('wrong_number', () => clientOf(node).header(2))
  })

  it('another transaction’s receipt or body, another object', async () => {
    const [asked, given] = [digestOf(one, 0), digestOf(one, 1)]
    for (const kind of ['receipts', 'transactions']) node.answers.set(`/v1/${kind}/${asked}`, node.answers.get(`/v1/${kind}/${given}`)!)
    await refuses('wrong_receipt', () => clientOf(node).receipt(asked))
    await refuses('wrong_body', () => clientOf(node).body(asked))
    node.answers.set(`/v1/objects/${account}`, node.answers.get(`/v1/objects/${testId('nobody')}`)!)
    await refuses('wrong_object', () => clientOf(node).object(account))
  })

  it('a receipt under the header of another Pulse', async () => {
    const answer = node.answers.get(`/v1/receipts/${digestOf(one, 0)}`) as { [name: string]: Json }
    node.answers.set(`/v1/receipts/${digestOf(one, 0)}`, { ...answer, pulse: node.answers.get('/v1/pulses/2')! })
    await refuses('receipt_wrong_pulse', () => clientOf(node).receipt(digestOf(one, 0)))
  })

  it('the certificate of another header', async () => {
    const pulse = node.answers.get('/v1/pulses/2') as { [name: string]: Json }
    const forged = { ...two.header, stateRoot: testId('forged') }
    node.answers.set('/v1/pulses/2', { ...pulse, header: toBase64(encodeHeader(forged)) })
    await refuses('wrong_header', () => clientOf(node).header(2))
  })
})

describe('time', () => {
  it('a header ahead of this clock by more than the drift is refused, and accepted at the drift', async () => {
    await refuses('header_from_future', () => clientOf(node, { now: () => time - 9_001 }).latest())
    await clientOf(node, { now: () => time - 9_000 }).latest()
    await refuses('header_from_future', () => clientOf(node, { now: () => time - 10_001 }).receipt(digestOf(one, 0)))
  })

  it('an old header is refused where a fresh one is needed, and good for a receipt', async () => {
    const late = { now: () => time + 61_001 }
    await refuses('stale_header', () => clientOf(node, late).latest())
    await refuses('stale_header', () => clientOf(node, late).object(account))
    expect(await clientOf(node, late).receipt(digestOf(one, 0))).toBeDefined()
    expect(await clientOf(node, late).latest({ maxAgeMs: 60_001 })).toBeDefined()
    await refuses('stale_header', () => clientOf(node).object(account, { maxAgeMs: 999 }))
  })

  it('a newest header, or an object, from before a Pulse that the node already showed is stale', async () => {
    const client = clientOf(node)
    await client.latest()
    const old = answersOf(chain, [one])
    for (const path of ['/v1/pulses/latest', `/v1/objects/${account}?certificate=0`]) node.answers.set(path, old.get(path)!)
    await refuses('stale_header', () => client.latest())
    await refuses('stale_header', () => client.object(account))
    expect((await client.header(1)).header.number).toBe(1)
  })
})

describe('two certificates that exclude each other', () => {
  it('for one number stop the client for good, and both are kept as evidence', async () => {
    const client = clientOf(node)
    await client.latest()
    node.answers.set('/v1/pulses/2', answersOf(chain, [twin]).get('/v1/pulses/2')!)
    const error = await refuses('conflicting_certificates', () => client.header(2))
    expect(error).toBeInstanceOf(ConflictingCertificates)
    expect(error).toMatchObject({
      evidence: [
        { number: 2, header: encodeHeader(two.header), certificate: two.certificate },
        { number: 2, header: encodeHeader(twin.header), certificate: twin.certificate },
      ],
    })
    for (const act of [() => client.header(1), () => client.latest(), () => client.receipt(digestOf(one, 0)), () => client.trust(), () => client.object(account), () => client.body(digestOf(one, 0))]) {
      expect(await refuses('conflicting_certificates', act)).toBe(error)
    }
  })

  it('are also a Pulse that does not build on the one before, in whichever order they come', async () => {
    for (const order of [[1, 2], [2, 1]] as const) {
      const client = clientOf(scripted(chain, one, orphan))
      await client.header(order[0])
      const error = await refuses('conflicting_certificates', () => client.header(order[1]))
      expect(error).toMatchObject({ evidence: [{ number: 1 }, { number: 2 }] })
    }
  })

  it('do not stop it while one of them is not proven: a node cannot stop a client by a forgery', async () => {
    const client = clientOf(node)
    await client.latest()
    const honest = node.answers.get('/v1/pulses/2')!
    const forged = { ...twin, certificate: flipped(twin.certificate, 1_000) }
    node.answers.set('/v1/pulses/2', answersOf(chain, [forged]).get('/v1/pulses/2')!)
    await refuses('bad_signature', () => client.header(2))
    node.answers.set('/v1/pulses/2', honest)
    expect((await client.header(2)).headerHash).toBe(two.hash)
  })
})

describe('a certificate', () => {
  it('is checked once for a header, however often and in however many requests at once it comes', async () => {
    const client = clientOf(node)
    await Promise.all([client.header(1), client.receipt(digestOf(one, 0)), client.receipt(digestOf(one, 1)), client.receipt(digestOf(one, 2))])
    await client.receipt(digestOf(one, 0))
    await client.header(1)
    expect(verifier.count()).toBe(4)
  })

  it('dropped by a node that keeps no empty old Pulses is told apart from a Pulse that never was', async () => {
    const transport: NodeTransport = {
      ...node.transport,
      get: async (path, options) =>
        path === '/v1/pulses/1' ? { status: 404, body: { error: { code: 'certificate_dropped', message: '' } } } : node.transport.get(path, options),
    }
    const client = clientOf({ ...node, transport })
    await refuses('certificate_dropped', () => client.header(1))
    await refuses('unknown_pulse', () => client.header(99))
  })

  it('is left out of answers once the client has checked one, and then fetched once with the Pulse itself', async () => {
    const client = clientOf(node)
    await client.receipt(digestOf(one, 0))
    await client.receipt(digestOf(one, 1))
    await client.receipt(digestOf(two, 0))
    expect(node.asked).toEqual([
      '/v1/genesis',
      `/v1/receipts/${digestOf(one, 0)}`,
      `/v1/receipts/${digestOf(one, 1)}?certificate=0`,
      `/v1/receipts/${digestOf(two, 0)}?certificate=0`,
      '/v1/pulses/2',
    ])
  })

  it('that is left out must be that of the header which the receipt came with', async () => {
    const client = clientOf(node)
    await client.latest()
    const path = `/v1/receipts/${digestOf(one, 0)}?certificate=0`
    const answer = node.answers.get(path) as { pulse: { [name: string]: Json } }
    const forged = toBase64(encodeHeader({ ...one.header, receiptsRoot: testId('forged') }))
    node.answers.set(path, { ...answer, pulse: { ...answer.pulse, header: forged } })
    await refuses('wrong_header', () => client.receipt(digestOf(one, 0)))
  })

  it('that never comes is a malformed answer', async () => {
    node.answers.set('/v1/pulses/1', { ...(node.answers.get('/v1/pulses/1') as { [name: string]: Json }), certificate: '' })
    await refuses('node_malformed', () => clientOf(node).header(1))
  })

  it('is checked again once its header was forgotten, and a failure is not remembered', async () => {
    const client = clientOf(node, { keepHeaders: 1 })
    await client.header(1)
    await client.header(2)
    await client.header(1)
    expect(verifier.count()).toBe(12)
  })
})

describe('the genesis', () => {
  it('is asked for once, by however many at once, and again only after a failure', async () => {
    const client = clientOf(node)
    const honest = node.answers.get('/v1/genesis')!
    node.answers.set('/v1/genesis', 'nonsense')
    await refuses('node_malformed', () => client.trust())
    node.answers.set('/v1/genesis', honest)
    await Promise.all([client.trust(), client.latest(), client.trust()])
    expect(node.asked.filter((path) => path === '/v1/genesis')).toHaveLength(2)
  })
})

describe('a long poll', () => {
  it('tells the node how long, to the millisecond, and leaves the transport that much time and more', async () => {
    const polls: [string, number | undefined][] = []
    const transport: NodeTransport = {
      ...node.transport,
      get: async (path, options) => {
        polls.push([path, options?.timeoutMs])
        return node.transport.get(path, options)
      },
    }
    const client = clientOf({ ...node, transport })
    const digest = testId('unknown')
    await client.receipt(digest, { waitSeconds: 1.234_567 })
    await client.receipt(digest, { waitSeconds: 60 })
    expect(polls.slice(1)).toEqual([
      [`/v1/receipts/${digest}?wait=1.235`, 11_234.567],
      [`/v1/receipts/${digest}?wait=60`, 70_000],
    ])
  })
})

describe('a node that cannot or will not answer', () => {
  const answering = (status: number, body: unknown): LightClient =>
    createLightClient({ transport: { get: async () => ({ status, body }), post: async () => ({ status, body }) } })

  it('5xx and 429 are a node that is away for now; other statuses are a node that refuses', async () => {
    const halted = await refuses('node_unavailable', () => answering(503, { error: { code: 'halted', message: 'no quorum' } }).trust())
    expect(halted.message).toContain('"halted" "no quorum"')
    expect(isNodeAway(halted)).toBe(true)
    await refuses('node_unavailable', () => answering(429, 'slow down').trust())
    const refused = await refuses('node_refused', () => answering(404, null).trust())
    expect(isNodeAway(refused)).toBe(false)
    await refuses('node_refused', () => answering(204, undefined).trust())
  })

  it('a 404 that is not the API’s own is no proof that a transaction is unknown', async () => {
    const transport: NodeTransport = {
      ...node.transport,
      get: async (path, options) => (path === '/v1/genesis' ? node.transport.get(path, options) : { status: 404, body: { error: { code: 'not_found', message: '' } } }),
    }
    await refuses('node_refused', () => createLightClient({ transport }).receipt(testId('x')))
  })

  it('what the node says in an error is shown quoted and cut', async () => {
    const hostile = { error: { code: 'x'.repeat(1_000), message: `\u001b[2J\n${'y'.repeat(10_000)}` } }
    const error = await refuses('node_refused', () => answering(400, hostile).trust())
    expect(error.message.length).toBeLessThan(400)
    expect(error.message).not.toContain('\u001b')
  })
})

describe('a wrong call', () => {
  it('names what is wrong, before anything is asked', async () => {
    const client = clientOf(node)
    await expect(client.receipt('abc')).rejects.toThrow(InputError)
    await expect(client.receipt('abc')).rejects.toThrow(/^digest: /)
    await expect(client.object('A'.repeat(64))).rejects.toThrow(/^id: /)
    for (const number of [0, -1, 1.5, Number.NaN]) await expect(client.header(number)).rejects.toThrow(/^number: /)
    for (const waitSeconds of [-1, Number.NaN, 60.001, Infinity]) {
      await expect(client.receipt(testId('x'), { waitSeconds })).rejects.toThrow(/^waitSeconds: /)
    }
    await expect(client.latest({ maxAgeMs: Number.NaN })).rejects.toThrow(/^maxAgeMs: /)
    await expect(client.object(account, { maxAgeMs: -1 })).rejects.toThrow(/^maxAgeMs: /)
    await expect(client.body('../status')).rejects.toThrow(/^digest: /)
    expect(node.asked).toEqual([])
  })

  it('a misspelt option is refused: a misspelt chain would be a client that trusts its node', () => {
    const misspelt = { transport: node.transport, chian: chain.trust.chain }
    expect(() => createLightClient(misspelt)).toThrow(/^chian: /)
    expect(() => createLightClient({ transport: node.transport, chain: 'sion:abc' })).toThrow(/^chain: /)
    expect(() => createLightClient({ transport: node.transport, keepHeaders: 0 })).toThrow(/^keepHeaders: /)
    expect(() => createLightClient({ transport: node.transport, maxDriftMs: -1 })).toThrow(/^maxDriftMs: /)
    expect(() => createLightClient({ transport: node.transport, maxAgeMs: -1 })).toThrow(/^maxAgeMs: /)
  })
})

describe('giving up', () => {
  it('is with the signal’s own reason, and does not disturb who waits for the same certificate', async () => {
    let release = (): void => {}
    const released = new Promise<void>((resolve) => (release = resolve))
    const signatures = {
      verify: async (...question: Parameters<typeof verifier.verify>): Promise<boolean> => {
        await released
        return verifier.verify(...question)
      },
    }
    const client = clientOf(node, { signatures })
    const impatient = new AbortController()
    const first = client.header(1, { signal: impatient.signal })
    const second = client.header(1)
    const refused = expect(first).rejects.toThrow('enough')
    await new Promise((resolve) => setTimeout(resolve, 20))
    impatient.abort(new Error('enough'))
    await refused
    release()
    expect((await second).headerHash).toBe(one.hash)
  })

  it('before it began asks for nothing', async () => {
    const signal = AbortSignal.abort(new Error('never mind'))
    await expect(clientOf(node).latest({ signal })).rejects.toThrow('never mind')
  })
})
