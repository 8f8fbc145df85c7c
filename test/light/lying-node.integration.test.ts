import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fromBase64, SionError, toBase64, type Id } from '../../src/codec/index.js'
import { keysFromSeed } from '../../src/crypto/keys.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'
import { decodeReceipt, encodeReceipt, type LedgerEvent } from '../../src/ledger/index.js'
import {
  ConflictingCertificates,
  createLightClient,
  httpTransport,
  isNodeAway,
  MAX_ANSWER_BYTES,
  type LightClient,
  type LightClientOptions,
  type ObjectJson,
  type PulseJson,
  type ReceiptJson,
} from '../../src/light/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { decodeCertificate, decodeHeader, encodeCertificate, encodeHeader, headerHash, voteMessage, type Certificate } from '../../src/pulse/index.js'
import { Api, newWallet } from '../node/support.js'
import { lyingProxy, type Exchange, type Lie, type LyingProxy } from '../support/lying-proxy.js'
import { refuses } from '../support/refusals.js'
import { testId } from '../support/signed-chain.js'

/**
 * A real node, a proxy that changes what it says, and the whole light client behind it.
 *
 * The nodes do not tick on their own: a Pulse comes of a transaction, so a test knows which one is the newest.
 */
const quiet = { listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 3_600_000 }
const stops: (() => Promise<void> | void)[] = []

let node: DevnetNode
let other: DevnetNode
let proxy: LyingProxy
let payee: Id
let first: Id
let second: Id

beforeAll(async () => {
  node = await startNode(quiet)
  stops.push(() => node.stop())
  other = await startNode({ ...quiet, validators: 1 })
  stops.push(() => other.stop())
  proxy = await lyingProxy(node.url)
  stops.push(() => proxy.stop())
  payee = newWallet().id
  const api = new Api(node.url, node.chain)
  first = (await api.fund(payee, '1')).digest
  second = (await api.fund(newWallet().id, '2')).digest
})

afterAll(async () => {
  for (const stop of stops.reverse()) await stop()
})

beforeEach(() => {
  proxy.lie = () => undefined
  proxy.target = node.url
})

function clientOf(options: Partial<LightClientOptions> = {}): LightClient {
  return createLightClient({ transport: httpTransport(proxy.url), chain: node.chain, maxAgeMs: Infinity, ...options })
}

/** Changes the answers to paths that begin with `path`. */
function rewrite<T>(path: string, change: (body: T) => unknown): void {
  proxy.lie = (exchange): Lie | undefined => {
    if (!exchange.path.startsWith(path) || exchange.status !== 200) return undefined
    return { body: change(structuredClone(exchange.body) as T) }
  }
}

function rewriteCertificate(change: (certificate: Certificate) => Certificate): void {
  rewrite<ReceiptJson>('/v1/receipts/', (answer) => {
    const certificate = change(decodeCertificate(fromBase64(answer.pulse.certificate, 'certificate')))
    return { ...answer, pulse: { ...answer.pulse, certificate: toBase64(encodeCertificate(certificate)) } }
  })
}

function rewriteReceipt(change: (event: Extract<LedgerEvent, { kind: 'Transferred' }>) => LedgerEvent): void {
  rewrite<ReceiptJson>('/v1/receipts/', (answer) => {
    const receipt = decodeReceipt(fromBase64(answer.receipt, 'receipt'))
    const events = receipt.events.map((event) => (event.kind === 'Transferred' ? change(event) : event))
    return { ...answer, receipt: toBase64(encodeReceipt({ ...receipt, events })) }
  })
}

describe('an honest node', () => {
  it('proves a payment, its payee’s balance, an absence, a body and its newest header', async () => {
    const client = clientOf()
    const paid = await client.receipt(first)
    expect(paid).toMatchObject({ pinned: true, chain: node.chain, receipt: { digest: first, outcome: { kind: 'success' } } })
    expect(paid?.receipt.events).toEqual([expect.objectContaining({ outputs: [[payee, 1_000_000n]] })])
    const { quorum, signed, total } = paid!.certificate
    expect(signed >= quorum && signed <= total).toBe(true)
    expect((await client.object(payee)).object).toMatchObject({ kind: 'account', balance: 1_000_000n })
    expect((await client.object(testId('nobody'))).object).toBeUndefined()
    expect(await client.body(first)).toMatchObject({ action: { kind: 'transfer', to: payee, amount: 1_000_000n } })
    const latest = await client.latest()
    expect((await client.header(latest.header.number)).headerHash).toBe(latest.headerHash)
    expect((await client.trust()).genesis).toEqual(node.genesis)
  })

  it('certifies a chain of headers: each builds on the one before, down to the genesis', async () => {
    const client = clientOf()
    const { header } = await client.latest()
    expect(header.number).toBeGreaterThanOrEqual(3)
    for (let number = 1; number <= header.number; number++) await client.header(number)
  })

  it('lets a client wait for a receipt, and says nothing about a transaction that never comes', async () => {
    expect(await clientOf().receipt(testId('never'), { waitSeconds: 0.05 })).toBeUndefined()
  })
})

describe('a receipt from a node that lies', () => {
  it('about the payee or the amount', async () => {
    rewriteReceipt((event) => ({ ...event, outputs: [[testId('thief'), 1_000_000n]] }))
    await refuses('receipt_not_proven', () => clientOf().receipt(first))
    rewriteReceipt((event) => ({ ...event, outputs: [[payee, 2_000_000n]] }))
    await refuses('receipt_not_proven', () => clientOf().receipt(first))
  })

  it('by showing someone else’s', async () => {
    const theirs = (await new Api(node.url, node.chain).get<ReceiptJson>(`/v1/receipts/${second}`)).body
    rewrite('/v1/receipts/', () => theirs)
    await refuses('wrong_receipt', () => clientOf().receipt(first))
    rewrite('/v1/receipts/', () => {
      const receipt = { ...decodeReceipt(fromBase64(theirs.receipt, 'receipt')), digest: first }
      return { ...theirs, receipt: toBase64(encodeReceipt(receipt)) }
    })
    await refuses('receipt_not_proven', () => clientOf().receipt(first))
  })

  it('by proving it under a header of its own making', async () => {
    rewrite<ReceiptJson>('/v1/receipts/', (answer) => {
      const header = { ...decodeHeader(fromBase64(answer.pulse.header, 'header')), receiptsRoot: testId('root') }
      return { ...answer, pulse: { ...answer.pulse, header: toBase64(encodeHeader(header)) } }
    })
    await refuses('wrong_header', () => clientOf().receipt(first))
  })
})

describe('a certificate from a node that lies', () => {
  it('with too few votes, none, or one of them twice', async () => {
    rewriteCertificate((certificate) => ({ ...certificate, votes: certificate.votes.slice(0, 2) }))
    await refuses('under_quorum', () => clientOf().receipt(first))
    rewriteCertificate((certificate) => ({ ...certificate, votes: [] }))
    await refuses('empty_certificate', () => clientOf().receipt(first))
    rewriteCertificate(({ votes, ...rest }) => ({ ...rest, votes: [votes[0]!, votes[0]!, votes[1]!] }))
    await refuses('duplicate_signer', () => clientOf().receipt(first))
  })

  it('with signatures made by keys of its own', async () => {
    const forger = keysFromSeed(new Uint8Array(32).fill(7))
    const pulse = (await new Api(node.url, node.chain).get<ReceiptJson>(`/v1/receipts/${first}`)).body.pulse
    const header = decodeHeader(fromBase64(pulse.header, 'header'))
    const message = voteMessage({ chain: node.chain, epoch: header.epoch, number: header.number, headerHash: headerHash(header) })
    const mlDsa = await inlineSignatures.sign('ml-dsa-44', forger, message)
    const slhDsa = await inlineSignatures.sign('slh-dsa-sha2-128f', forger, message)
    rewriteCertificate(({ votes, ...rest }) => ({ ...rest, votes: votes.map((vote) => ({ ...vote, mlDsa, slhDsa })) }))
    await refuses('bad_signature', () => clientOf().receipt(first))
    rewriteCertificate(({ votes, ...rest }) => ({ ...rest, votes: votes.map((vote) => ({ ...vote, mlDsa })) }))
    await refuses('bad_signature', () => clientOf().receipt(first))
    rewriteCertificate(({ votes, ...rest }) => ({ ...rest, votes: votes.map((vote) => ({ ...vote, slhDsa })) }))
    await refuses('bad_signature', () => clientOf().receipt(first))
  })

  it('of another Pulse, put under this one', async () => {
    const theirs = (await new Api(node.url, node.chain).get<ReceiptJson>(`/v1/receipts/${second}`)).body.pulse
    rewrite<ReceiptJson>('/v1/receipts/', (answer) => ({ ...answer, pulse: { ...answer.pulse, certificate: theirs.certificate } }))
    await refuses('wrong_number', () => clientOf().receipt(first))
  })
})

describe('another chain, well signed by its own validators', () => {
  it('is refused at its genesis, and behind the right genesis at its headers', async () => {
    proxy.target = other.url
    await refuses('wrong_chain', () => clientOf().latest())
    proxy.target = node.url
    const client = clientOf()
    await client.trust()
    proxy.target = other.url
    await refuses('wrong_chain', () => client.latest())
    await refuses('wrong_chain', () => client.object(payee))
    await refuses('wrong_chain', () => client.header(1))
  })

  it('is what a client without a pinned chain would believe, and it says so', async () => {
    proxy.target = other.url
    const latest = await clientOf({ chain: undefined }).latest()
    expect(latest).toMatchObject({ chain: other.chain, pinned: false })
  })
})

describe('a node that shows the past', () => {
  it('as its newest header or in an object, after it showed more', async () => {
    const api = new Api(node.url, node.chain)
    const old = (await api.get<PulseJson>('/v1/pulses/1')).body
    const before = (await api.get<ObjectJson>(`/v1/objects/${payee}`)).body
    await api.fund(payee, '3')
    const client = clientOf()
    await client.latest()
    rewrite('/v1/pulses/latest', () => old)
    await refuses('stale_header', () => client.latest())
    rewrite('/v1/objects/', () => before)
    await refuses('stale_header', () => client.object(payee))
  })

  it('to a client that has seen nothing: by the age of what it shows', async () => {
    const later = { now: () => Date.now() + 100_000, maxAgeMs: 60_000 }
    await refuses('stale_header', () => clientOf(later).latest())
    await refuses('stale_header', () => clientOf(later).object(payee))
    expect(await clientOf(later).receipt(first)).toBeDefined()
  })
})

describe('an object from a node that lies', () => {
  it('about a balance, by denying it, or by showing another', async () => {
    const theirs = (await new Api(node.url, node.chain).get<ObjectJson>(`/v1/objects/${testId('nobody')}`)).body
    rewrite<ObjectJson>('/v1/objects/', (answer) => ({ ...answer, object: null }))
    await refuses('object_not_proven', () => clientOf().object(payee))
    rewrite('/v1/objects/', () => theirs)
    await refuses('wrong_object', () => clientOf().object(payee))
    rewrite('/v1/objects/', () => ({ ...theirs, id: payee }))
    await refuses('object_not_proven', () => clientOf().object(payee))
    rewrite<ObjectJson>('/v1/objects/', (answer) => ({ ...answer, object: toBase64(Uint8Array.of(1, 0, 0, 0, 0, 9, 9, 9, 9, 0, 0)) }))
    await refuses('object_not_proven', () => clientOf().object(payee))
  })
})

describe('what is no answer', () => {
  const raw = (write: Extract<Lie, { raw: unknown }>['raw']): void => {
    proxy.lie = ({ path }: Exchange) => (path.startsWith('/v1/receipts/') ? { raw: write } : undefined)
  }

  it('HTML, half of the JSON, too much of it, a redirect', async () => {
    raw((response) => response.end('<!doctype html><title>Welcome</title>'))
    await refuses('node_malformed', () => clientOf().receipt(first))
    raw((response) => response.end('{"receipt":"AAAA","proof":{"ind'))
    await refuses('node_malformed', () => clientOf().receipt(first))
    raw((response) => response.end(`{"receipt":"${'A'.repeat(MAX_ANSWER_BYTES)}"}`))
    await refuses('node_malformed', () => clientOf().receipt(first))
    raw((response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end())
    await refuses('node_malformed', () => clientOf().receipt(first))
  })

  it('a connection that drops, and an answer that never comes while the caller has had enough', async () => {
    raw((response) => response.destroy())
    expect(isNodeAway(await refuses('node_unreachable', () => clientOf().receipt(first)))).toBe(true)
    raw(() => {})
    await expect(clientOf().receipt(first, { signal: AbortSignal.timeout(50) })).rejects.toThrow(/timeout/)
  })

  it('does not spoil the client: the next good answer is believed', async () => {
    const client = clientOf()
    raw((response) => response.end('nonsense'))
    await refuses('node_malformed', () => client.receipt(first))
    proxy.lie = () => undefined
    expect(await client.receipt(first)).toBeDefined()
  })
})

it('with bits of any answer flipped at random nothing false is accepted, and every refusal has a code', async () => {
  const questions: ((client: LightClient) => Promise<unknown>)[] = [
    (client) => client.receipt(first),
    (client) => client.object(payee),
    (client) => client.header(1),
    (client) => client.body(first),
  ]
  const truths = await Promise.all(questions.map((ask) => ask(clientOf())))
  await fc.assert(
    fc.asyncProperty(fc.nat({ max: questions.length - 1 }), fc.nat({ max: 7 }), fc.nat(), fc.boolean(), async (which, bit, where, alsoGenesis) => {
      proxy.lie = ({ path, body }) =>
        alsoGenesis || path !== '/v1/genesis'
          ? {
              raw: (response) => {
                const text = Buffer.from(JSON.stringify(body))
                const at = where % text.length
                text[at] = text[at]! ^ (1 << bit)
                response.end(text)
              },
            }
          : undefined
      try {
        expect(await questions[which]!(clientOf())).toEqual(truths[which])
      } catch (error) {
        if (!(error instanceof SionError)) throw error
        expect(error.code).toMatch(/^[a-z_]+$/)
      }
    }),
    { numRuns: 200 },
  )
})

it('validators that run twice from one copied data folder sign two histories: the client stops and keeps both', async () => {
  const root = mkdtempSync(join(tmpdir(), 'sion-light-test-'))
  stops.push(() => rmSync(root, { recursive: true, force: true }))
  const [left, right] = [join(root, 'left'), join(root, 'right')]
  const origin = await startNode({ ...quiet, dataFolder: left, validators: 1 })
  await origin.stop()
  cpSync(left, right, { recursive: true })
  const twins = await Promise.all([left, right].map((dataFolder) => startNode({ ...quiet, dataFolder })))
  for (const twin of twins) stops.push(() => twin.stop())
  const [a, b] = twins as [DevnetNode, DevnetNode]
  const digests = await Promise.all(twins.map(async ({ url, chain }) => (await new Api(url, chain).fund(newWallet().id, '1')).digest))

  proxy.target = a.url
  const client = clientOf({ chain: a.chain })
  const one = await client.receipt(digests[0]!)
  proxy.target = b.url
  const error = await refuses('conflicting_certificates', () => client.receipt(digests[1]!))
  if (!(error instanceof ConflictingCertificates)) throw error
  const [x, y] = error.evidence
  expect(x.number).toBe(one?.header.number)
  expect(y.number).toBe(x.number)
  expect(toBase64(x.header)).not.toBe(toBase64(y.header))
  for (const { header, certificate } of error.evidence) {
    expect(decodeCertificate(certificate).headerHash).toBe(headerHash(decodeHeader(header)))
  }
  await refuses('conflicting_certificates', () => client.latest())
})
