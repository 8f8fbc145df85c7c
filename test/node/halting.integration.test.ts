import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { fromBase64, parseUsd } from '../../src/codec/index.js'
import type { Signatures } from '../../src/crypto/signatures.js'
import { digestOf } from '../../src/ledger/index.js'
import type { PulseJson, SubmittedJson } from '../../src/light/node-api.js'
import { startNode, type DevnetNode, type NodeOptions } from '../../src/node/index.js'
import { decodeProposal } from '../../src/node/proposal.js'
import { Store } from '../../src/node/store.js'
import { decodeCertificate, decodeHeader, headerHash } from '../../src/pulse/index.js'
import { Api, holdableSignatures, newWallet, sign } from './support.js'

const started: DevnetNode[] = []
const lines: string[] = []
const log = (line: string): void => void lines.push(line)

async function start(options: NodeOptions = {}): Promise<{ node: DevnetNode; api: Api }> {
  lines.length = 0
  const node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 60_000, logger: { info: log, warn: log, error: log }, ...options })
  started.push(node)
  return { node, api: new Api(node.url, node.chain) }
}

afterEach(async () => {
  for (const node of started.splice(0)) await node.stop()
})

async function signersOf(api: Api, pulse: number): Promise<number[]> {
  const { body } = await api.get<PulseJson>(`/v1/pulses/${pulse}`)
  return decodeCertificate(fromBase64(body.certificate, 'certificate')).votes.map(({ validator }) => validator)
}

describe('validators that stop', () => {
  it('one of four: the chain goes on without its vote', async () => {
    const { api } = await start({ stopped: [1] })
    const { pulse } = await api.fund(newWallet().id, '1')
    expect(await signersOf(api, pulse)).toEqual([0, 2, 3])
    expect(await api.status()).toMatchObject({ active: true, active_validators: 3, validators: 4 })
  })

  it('take turns while all of them run', async () => {
    const { api } = await start()
    const seen = new Set<string>()
    for (let i = 0; i < 4; i++) seen.add(String(await signersOf(api, (await api.fund(newWallet().id, '1')).pulse)))
    expect(seen.size).toBe(4)
  })

  it('two of four: the chain halts, says so, refuses payments, and goes on when one is back', async () => {
    const { node, api } = await start()
    const [alice, bob] = [newWallet(), newWallet()]
    await api.fund(alice.id, '1')
    const body = await api.body(alice.id, { kind: 'transfer', to: bob.id, amount: parseUsd('0.5', 'usd'), purpose: '' })
    const tx = await sign(alice.keys, body)
    node.stopValidator(0)
    expect(await api.post('/v1/devnet/validators/3', { running: false })).toEqual({ status: 200, body: { validator: 3, running: false, active: false } })
    expect(await api.status()).toMatchObject({ active: false, active_validators: 2 })
    expect(lines.some((line) => /halted/.test(line))).toBe(true)
    expect(await api.submit(tx)).toMatchObject({ status: 503, body: { error: { code: 'chain_halted' } } })
    expect(await api.post('/v1/faucet', { account: bob.id, amount: '1' })).toMatchObject({ status: 503 })
    expect((await api.get(`/v1/accounts/${alice.id}`)).status).toBe(200)
    node.startValidator(0)
    expect((await api.submit(tx)).status).toBe(202)
    const receipt = await api.receipt(digestOf(body))
    expect(receipt?.outcome.kind).toBe('success')
    expect(await signersOf(api, receipt?.pulse ?? 0)).toEqual([0, 1, 2])
  })

  it('while they sign: a further one is asked, and the vote of the stopped one does not count', async () => {
    const { signatures, hold, release, whenHeld } = holdableSignatures()
    const { node, api } = await start({ signatures })
    hold()
    const { body } = await api.post<SubmittedJson>('/v1/faucet', { account: newWallet().id, amount: '1' })
    await whenHeld()
    // Asked in turn, beginning with the round, which is the Pulse's number here.
    const [asked, further] = [body.pulse % 4, (body.pulse + 3) % 4]
    node.stopValidator(asked)
    release()
    expect(await api.receipt(body.digest)).toMatchObject({ pulse: body.pulse, outcome: { kind: 'success' } })
    const signers = await signersOf(api, body.pulse)
    expect(signers).not.toContain(asked)
    expect(signers).toContain(further)
  })

  it('too many while they sign: the Pulse waits, and comes out as it was proposed, even after a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sion-halting-test-'))
    try {
      const { signatures, hold, release, whenHeld } = holdableSignatures()
      const dataFolder = join(folder, 'chain')
      const first = await start({ dataFolder, signatures })
      hold()
      const { body } = await first.api.post<SubmittedJson>('/v1/faucet', { account: newWallet().id, amount: '1' })
      await whenHeld()
      for (const index of [0, 1, 2, 3]) first.node.stopValidator(index)
      release()
      expect(await first.api.status()).toMatchObject({ active: false, pulse: body.pulse, certified_pulse: body.pulse - 1 })
      expect(await first.api.receipt(body.digest, 0)).toBeUndefined()
      await first.node.stop()

      const store = Store.open(dataFolder)
      const proposed = decodeProposal(store.proposal() ?? new Uint8Array())
      await store.close()
      const second = await start({ dataFolder, stopped: [0, 1] })
      expect(await second.api.status()).toMatchObject({ active: false, certified_pulse: body.pulse - 1 })
      const waiting = second.api.receipt(body.digest)
      second.node.startValidator(1)
      expect(await waiting).toMatchObject({ pulse: body.pulse, outcome: { kind: 'success' } })
      const { body: pulse } = await second.api.get<PulseJson>(`/v1/pulses/${body.pulse}`)
      expect(headerHash(decodeHeader(fromBase64(pulse.header, 'header')))).toBe(proposed.headerHash)
      await second.node.stop()
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('and cannot sign for a moment are asked again', async () => {
    let broken = 3
    const { signatures } = holdableSignatures()
    const failing: Signatures = {
      ...signatures,
      sign: (...asked) => (asked[0] === 'slh-dsa-sha2-128f' && broken-- > 0 ? Promise.reject(new Error('no entropy')) : signatures.sign(...asked)),
    }
    const { api } = await start({ signatures: failing })
    expect(await signersOf(api, 1)).toHaveLength(3)
    expect(lines.filter((line) => /cannot sign Pulse 1: no entropy/.test(line))).toHaveLength(3)
  })

  it('from the start: a new chain waits for its first Pulse and answers meanwhile', async () => {
    const { node, api } = await start({ stopped: [0, 1] })
    expect(await api.status()).toMatchObject({ active: false, certified_pulse: 0 })
    expect(await api.get('/v1/pulses/latest')).toMatchObject({ status: 404, body: { error: { code: 'unknown_pulse' } } })
    expect(await api.get(`/v1/objects/${newWallet().id}`)).toMatchObject({ status: 503, body: { error: { code: 'no_certified_pulse' } } })
    node.startValidator(1)
    expect((await api.fund(newWallet().id, '1')).outcome.kind).toBe('success')
  })

  it('are known by number: another is refused', async () => {
    const { node } = await start()
    expect(() => node.stopValidator(4)).toThrow(expect.objectContaining({ code: 'unknown_validator' }))
    await expect(start({ stopped: [4] })).rejects.toMatchObject({ code: 'invalid_input', field: 'stopped' })
  })
})

describe('a quorum', () => {
  it.each([
    [1, 1],
    [2, 2],
    [3, 3],
    [7, 5],
  ])('of %i validators is %i', async (validators, signers) => {
    const { api } = await start({ validators })
    expect(await signersOf(api, 1)).toHaveLength(signers)
  })
})

describe('a ledger that stops answering', () => {
  it('lets requests hang, and answers them when it goes on', async () => {
    const { node, api } = await start()
    node.pause()
    await expect(api.get('/v1/status', AbortSignal.timeout(200))).rejects.toMatchObject({ name: 'TimeoutError' })
    const patient = api.status()
    node.resume()
    expect((await patient).active).toBe(true)
    expect((await api.fund(newWallet().id, '1')).outcome.kind).toBe('success')
  })

  it('can be stopped while it does not answer', async () => {
    const { node, api } = await start()
    node.pause()
    const asked = expect(api.status()).rejects.toThrow()
    await node.stop()
    await asked
  })
})
