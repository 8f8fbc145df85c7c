import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fromBase64, parseUsd } from '../../src/codec/index.js'
import { encodeBody, digestOf, spentNonceId, TREASURY } from '../../src/ledger/index.js'
import type { ObjectJson, PulseJson, ReceiptJson, TransactionJson } from '../../src/light/node-api.js'
import { startNode, type DevnetNode, type NodeOptions } from '../../src/node/index.js'
import { decodeCertificate, decodeHeader, headerHash } from '../../src/pulse/index.js'
import { Api, holdableSignatures, newWallet, sign } from './support.js'

let parent: string
let node: DevnetNode
let api: Api

const FEE = parseUsd('0.0011', 'fee')

async function start(options: NodeOptions = {}): Promise<void> {
  node = await startNode({ dataFolder: join(parent, 'chain'), listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 60_000, ...options })
  api = new Api(node.url, node.chain)
}

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'sion-node-test-'))
  await start()
})

afterAll(async () => {
  await node.stop()
  rmSync(parent, { recursive: true })
})

function transfer(to: string, usd: string) {
  return { kind: 'transfer' as const, to, amount: parseUsd(usd, 'usd'), purpose: '' }
}

async function latestHeader() {
  const { body } = await api.get<PulseJson>('/v1/pulses/latest')
  return decodeHeader(fromBase64(body.header, 'header'))
}

describe('a devnet', () => {
  it('certifies by exactly a quorum, all of whom voted for the header', async () => {
    const { body } = await api.get<PulseJson>('/v1/pulses/latest')
    const certificate = decodeCertificate(fromBase64(body.certificate, 'certificate'))
    expect(certificate.votes).toHaveLength(3)
    expect(certificate.headerHash).toBe(headerHash(decodeHeader(fromBase64(body.header, 'header'))))
  })

  it('keeps all the money there is, through payments, fees and failures', async () => {
    const [faucet] = node.genesis.balances[0] ?? ['']
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '10')
    await api.pay(alice, bob.id, '2.5')
    const failed = await api.pay(alice, alice.id, '1')
    expect(failed.outcome.kind).toBe('failed')
    expect(await api.balance(alice.id)).toBe(parseUsd('7.5', 'usd') - 2n * FEE)
    expect(await api.balance(bob.id)).toBe(parseUsd('2.5', 'usd'))
    const accounts = [faucet, alice.id, bob.id, TREASURY]
    const balances = await Promise.all(accounts.map((id) => api.balance(id)))
    const supply = node.genesis.balances.reduce((sum, [, balance]) => sum + balance, 0n)
    expect(balances.reduce((sum, balance) => sum + balance, 0n)).toBe(supply)
  })

  it('lets a transaction in once: sent again it is the same answer and one debit, also after a restart', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '10')
    const tx = await sign(alice.keys, await api.body(alice.id, transfer(bob.id, '1')))
    const answers = await Promise.all(Array.from({ length: 8 }, () => api.submit(tx)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]))
    expect(new Set(answers.map(({ body }) => body.digest))).toEqual(new Set([digestOf(tx.body)]))
    const receipt = await api.receipt(digestOf(tx.body))
    expect((await api.submit(tx)).body).toEqual({ digest: digestOf(tx.body), pulse: receipt?.pulse })
    await node.stop()
    await start()
    expect(await api.submit(tx)).toMatchObject({ status: 202, body: { digest: digestOf(tx.body), pulse: receipt?.pulse } })
    expect(await api.receipt(digestOf(tx.body))).toEqual(receipt)
    expect(await api.balance(bob.id)).toBe(parseUsd('1', 'usd'))
    // Another body under the same nonce is no second chance.
    const other = { ...tx.body, action: transfer(bob.id, '2') }
    expect(await api.submit(await sign(alice.keys, other))).toMatchObject({ status: 422, body: { error: { code: 'replayed' } } })
  })

  it('does not vouch for a transaction to somebody who knows its body and has not signed it', async () => {
    const [alice, mallory] = [newWallet(), newWallet()]
    await api.fund(alice.id, '10')
    const body = await api.body(alice.id, transfer(mallory.id, '1'))
    const forged = { ...(await sign(mallory.keys, body)), keys: alice.keys.publicKeys }
    const bad = { status: 422, body: { error: { code: 'bad_signature' } } }
    expect(await api.submit(forged)).toMatchObject(bad)
    const tx = await sign(alice.keys, body)
    await api.submit(tx)
    expect(await api.submit(forged)).toMatchObject(bad)
    expect(await api.submit(await sign(mallory.keys, body))).toMatchObject({ status: 422 })
    await api.receipt(digestOf(body))
    expect(await api.submit(forged)).toMatchObject(bad)
    expect(await api.submit(await sign(mallory.keys, body))).toMatchObject({ status: 422 })
  })

  it('reserves the money of what is pending, and says what is left', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const both = await Promise.all(['0.6', '0.4'].map(async (usd) => sign(alice.keys, await api.body(alice.id, transfer(bob.id, usd)))))
    const answers = await Promise.all(both.map((tx) => api.submit(tx)))
    const refused = answers.find(({ status }) => status !== 202)
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1)
    expect(refused).toMatchObject({ status: 422, body: { error: { code: 'insufficient_balance' } } })
    expect(refused?.body.error.message).toMatch(
      new RegExp(`^insufficient balance: ${alice.id.slice(0, 8)} has 0\\.(3989|5989) USD, the payment and its fee need 0\\.(4|6)011 USD$`),
    )
  })

  it('takes a payment of all there is but the fee, and none of a micro-USD more', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const over = await sign(alice.keys, await api.body(alice.id, transfer(bob.id, '0.998901')))
    expect(await api.submit(over)).toMatchObject({ status: 422, body: { error: { code: 'insufficient_balance' } } })
    expect((await api.pay(alice, bob.id, '0.9989')).outcome.kind).toBe('success')
    expect(await api.balance(alice.id)).toBe(0n)
  })

  it('takes a transaction valid until the next Pulse and refuses one that ended with the last', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const { certified_pulse: last } = await api.status()
    const late = await sign(alice.keys, await api.body(alice.id, transfer(bob.id, '0.1'), { validUntil: last }))
    expect(await api.submit(late)).toMatchObject({ status: 422, body: { error: { code: 'expired' } } })
    expect(await api.pay(alice, bob.id, '0.1', { validUntil: last + 1 })).toMatchObject({ pulse: last + 1, outcome: { kind: 'success' } })
  })

  it('forgets a nonce in the Pulse after its last valid one, and proves both', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '10')
    const { certified_pulse: last, objects } = await api.status()
    const body = await api.body(alice.id, transfer(bob.id, '1'), { validUntil: last + 2 })
    await api.submit(await sign(alice.keys, body))
    await api.receipt(digestOf(body))
    const nonce = `/v1/objects/${spentNonceId(alice.id, body.nonce)}`
    expect((await api.status()).objects).toBe(objects + 2)
    expect((await api.get<ObjectJson>(nonce)).body.object).not.toBeNull()
    await api.pay(alice, bob.id, '1', { validUntil: last + 2 })
    expect((await api.get<ObjectJson>(nonce)).body.object).not.toBeNull()
    await api.pay(alice, bob.id, '1')
    expect((await api.get<ObjectJson>(nonce)).body.object).toBeNull()
    expect((await api.status()).objects).toBe(objects + 2)
    // It cannot be replayed all the same: it is expired.
    expect(await api.submit(await sign(alice.keys, { ...body, action: transfer(bob.id, '2') }))).toMatchObject({ status: 422, body: { error: { code: 'expired' } } })
  })

  it('drops what an earlier transaction of the same Pulse made inadmissible, and says why when asked again', async () => {
    const { signatures, hold, release, whenHeld } = holdableSignatures()
    await node.stop()
    await start({ signatures })
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const [dual, plain] = await Promise.all([
      sign(alice.keys, await api.body(alice.id, { kind: 'setDual', dual: true })),
      sign(alice.keys, await api.body(alice.id, transfer(bob.id, '0.1'))),
    ])
    // While one Pulse is held up, both come in for the next.
    hold()
    await api.post('/v1/faucet', { account: bob.id, amount: '1' })
    await whenHeld()
    const before = await api.submit(dual)
    const after = await api.submit(plain)
    expect([before.status, after.status]).toEqual([202, 202])
    release()
    const started = performance.now()
    const [first, second] = await Promise.all([api.receipt(digestOf(dual.body)), api.get(`/v1/receipts/${digestOf(plain.body)}?wait=30`)])
    expect(first?.outcome.kind).toBe('success')
    expect(second).toMatchObject({ status: 404, body: { error: { code: 'unknown_transaction', message: expect.stringMatching(/dropped: .*dual/) } } })
    expect(await api.get(`/v1/receipts/${digestOf(plain.body)}?wait=60`)).toEqual(second)
    expect(performance.now() - started).toBeLessThan(20_000)
    expect(await api.submit(plain)).toMatchObject({ status: 422, body: { error: { code: 'missing_signature' } } })
    const twice = await sign(alice.keys, plain.body, { dual: true })
    expect(await api.submit(twice)).toMatchObject({ status: 202 })
    expect((await api.receipt(digestOf(plain.body)))?.outcome.kind).toBe('success')
  })

  it('publishes a body and never a signature', async () => {
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const tx = await sign(alice.keys, await api.body(alice.id, transfer(bob.id, '0.1')))
    const { body: taken } = await api.submit(tx)
    await api.receipt(taken.digest)
    const { body } = await api.get<TransactionJson>(`/v1/transactions/${taken.digest}`)
    expect(fromBase64(body.body, 'body')).toEqual(encodeBody(tx.body))
    const signature = Buffer.from(tx.mlDsa).toString('base64').slice(100, 200)
    for (const path of [`/v1/transactions/${taken.digest}`, `/v1/receipts/${taken.digest}`, `/v1/objects/${alice.id}`, '/v1/events', `/v1/pulses/${body.pulse}`]) {
      expect(JSON.stringify((await api.get(path)).body)).not.toContain(signature)
    }
  })

  it('leaves the certificate out for whoever has verified that header', async () => {
    const alice = newWallet()
    const { digest } = await api.fund(alice.id, '1')
    const full = await api.get<ReceiptJson>(`/v1/receipts/${digest}`)
    const slim = await api.get<ReceiptJson>(`/v1/receipts/${digest}?certificate=0`)
    expect(slim.body).toEqual({ ...full.body, pulse: { ...full.body.pulse, certificate: '' } })
    expect(full.body.pulse.certificate.length).toBeGreaterThan(70_000)
  })

  it('grows in time from Pulse to Pulse under a clock that goes back, or is broken', async () => {
    let now = Date.now() + 3_600_000
    await node.stop()
    await start({ clock: () => now })
    const times: number[] = []
    for (const next of [now, now - 86_400_000, Number.NaN]) {
      now = next
      await api.fund(newWallet().id, '1')
      times.push((await latestHeader()).time)
    }
    expect(times).toEqual([times[0], (times[0] ?? 0) + 1, (times[0] ?? 0) + 2])
  })

  it('ticks while idle', async () => {
    await node.stop()
    await start({ idleTickMs: 50 })
    const { certified_pulse: before } = await api.status()
    for (let seen = before; seen < before + 3; seen = (await api.status()).certified_pulse) await new Promise((resolve) => setTimeout(resolve, 20))
    expect((await latestHeader()).receiptCount).toBe(0)
  })
})
