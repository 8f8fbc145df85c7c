import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { fromBase64, toBase64, type Id } from '../../src/codec/index.js'
import { accountOf, decodeObject, digestOf } from '../../src/ledger/index.js'
import type { PulseJson, ReceiptJson, SubmittedJson } from '../../src/light/node-api.js'
import { decodeProposal } from '../../src/node/proposal.js'
import { Store } from '../../src/node/store.js'
import { decodeHeader, encodeHeader, headerHash } from '../../src/pulse/index.js'
import { DevnetProcess } from './devnet-process.js'
import { moneyIn } from './execution-support.js'
import { newWallet, sign, type Api } from './support.js'

const CRASHES = 8

/** What clients saw of the chain, and may rely on. */
class Witness {
  readonly headers = new Map<number, string>()
  readonly receipts = new Map<Id, string>()
  readonly paid = new Map<Id, bigint>()

  latest = 0

  saw({ number, header }: PulseJson): void {
    this.expects(number, header)
    this.latest = Math.max(this.latest, number)
  }

  /** Certified, or voted on. Two headers of one number: what no crash may ever lead to. */
  expects(number: number, header: string): void {
    expect(this.headers.get(number) ?? header).toBe(header)
    this.headers.set(number, header)
  }
}

/** Pays and watches until the node is gone. */
async function load(api: Api, witness: Witness, killed: AbortSignal): Promise<void> {
  const wallet = newWallet()
  const one = async (work: () => Promise<void>): Promise<void> => {
    while (!killed.aborted) {
      try {
        await work()
      } catch (error) {
        // The connection broke off, as it must; anything else is a finding.
        if (error instanceof TypeError && /fetch failed|terminated/.test(error.message)) return
        throw error
      }
    }
  }
  const receiptOf = async (digest: Id): Promise<ReceiptJson | undefined> => {
    const { status, body } = await api.get<ReceiptJson>(`/v1/receipts/${digest}?wait=60`)
    if (status !== 200) return undefined
    witness.saw(body.pulse)
    witness.receipts.set(digest, body.receipt)
    return body
  }
  const faucet = one(async () => {
    const { body } = await api.post<SubmittedJson>('/v1/faucet', { account: wallet.id, amount: '1' })
    await receiptOf(body.digest)
  })
  const payments = one(async () => {
    if ((await api.balance(wallet.id)) < 10_000n) return void (await pause(20))
    const body = await api.body(wallet.id, { kind: 'transfer', to: accountOf(newWallet().keys.publicKeys), amount: 1_000n, purpose: '' })
    await api.submit(await sign(wallet.keys, body))
    if ((await receiptOf(digestOf(body))) !== undefined && body.action.kind === 'transfer') witness.paid.set(body.action.to, body.action.amount)
  })
  const watching = one(async () => {
    witness.saw((await api.get<PulseJson>('/v1/pulses/latest')).body)
    await pause(5)
  })
  await Promise.all([faucet, payments, watching])
}

it('kill -9 at any moment costs nothing that was seen, and no number ever gets two headers', { timeout: 180_000 }, async () => {
  const parent = mkdtempSync(join(tmpdir(), 'sion-crash-test-'))
  const folder = join(parent, 'chain')
  const witness = new Witness()
  let chain: Id | undefined
  let loaded = Promise.resolve()
  let running = new DevnetProcess(['--data', folder, '--listen', '127.0.0.1:0'])
  /** Under load until a receipt was seen, and `ms` more. */
  const loadSeen = async (ms: number): Promise<void> => {
    const api = await running.api()
    expect(api.chain).toBe((chain ??= api.chain))
    const ending = new AbortController()
    const before = witness.receipts.size
    loaded = load(api, witness, ending.signal)
    const gone = loaded.then(() => Promise.reject(new Error('the node went away by itself')))
    gone.catch(() => {})
    while (witness.receipts.size === before) await Promise.race([pause(5), gone])
    await pause(ms)
    ending.abort()
  }
  try {
    for (let crash = 0; crash < CRASHES; crash++) {
      // Now and then in the middle of starting.
      if (crash % 3 === 2) await pause(200 + Math.random() * 500)
      else await loadSeen(Math.random() * 800)
      expect((await running.end('SIGKILL')).signal).toBe('SIGKILL')
      await loaded

      const store = Store.open(folder)
      expect(store.latest()).toBeGreaterThanOrEqual(witness.latest)
      const proposal = store.proposal()
      if (proposal !== undefined) {
        const { header } = decodeProposal(proposal)
        expect(header.number).toBe(store.latest() + 1)
        // What was voted on is what this number will be.
        witness.expects(header.number, toBase64(encodeHeader(header)))
      }
      await store.close()
      running = new DevnetProcess(['--data', folder, '--listen', '127.0.0.1:0'])
    }

    const api = await running.api()
    await api.fund(newWallet().id, '1')
    let parentHash = (await api.status()).genesis
    for (let number = 1; number <= witness.latest; number++) {
      const { body } = await api.get<PulseJson>(`/v1/pulses/${number}`)
      witness.saw(body)
      const header = decodeHeader(fromBase64(body.header, 'header'))
      expect(header.parent).toBe(parentHash)
      parentHash = headerHash(header)
    }
    for (const [digest, receipt] of witness.receipts) {
      expect((await api.get<ReceiptJson>(`/v1/receipts/${digest}?certificate=0`)).body.receipt).toBe(receipt)
    }
    for (const [account, amount] of witness.paid) expect(await api.balance(account)).toBe(amount)
    expect((await running.end('SIGTERM')).code).toBe(0)

    const store = Store.open(folder)
    expect(moneyIn(new Map(Array.from(store.objects(), ([id, bytes]) => [id, decodeObject(bytes)])))).toBe(10n ** 15n)
    await store.close()
  } finally {
    await running.end('SIGKILL')
    rmSync(parent, { recursive: true })
  }
})
