import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SionError } from '../../src/codec/index.js'
import { createLightClient, httpTransport, LightClientError, type LightClient, type VerifiedReceipt } from '../../src/light/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import {
  awaitOutcome,
  buildTransfer,
  createNodeClient,
  devnetWallet,
  pay,
  provenAccount,
  signTransaction,
  submitAndWait,
  waitForReceipt,
  type Ledger,
  type NodeClient,
  type Signed,
  type Submission,
} from '../../src/sdk/index.js'
import { lyingProxy } from '../support/lying-proxy.js'

const dana = devnetWallet('dana')
const bob = devnetWallet('bob')

let node: DevnetNode
let ledger: Ledger
let proven: VerifiedReceipt
let signed: Signed

function ledgerAt(url: string): Ledger {
  const transport = httpTransport(url)
  return { client: createLightClient({ transport, chain: node.chain }), node: createNodeClient(transport) }
}

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 1_000 })
  ledger = ledgerAt(node.url)
  const submission = await ledger.node.faucet(dana.account, 100_000_000n)
  if (submission.kind !== 'submitted') throw new Error(`the faucet: ${submission.kind}`)
  const receipt = await waitForReceipt(ledger.client, submission.digest)
  if (receipt === undefined) throw new Error('the faucet did not pay')
  proven = receipt
  signed = await signTransaction(dana, buildTransfer({ wallet: dana, chain: node.chain, to: bob.account, amount: 1n, pulse: 1 }), { keysKnown: false, dual: false })
})
afterAll(() => node.stop())

const away = () => new LightClientError('node_unreachable', 'no connection')

/** A client whose answers follow a script; the last one stays. */
function scripted(...steps: (VerifiedReceipt | undefined | Error)[]): Pick<LightClient, 'receipt'> & { asked: number } {
  const client = {
    asked: 0,
    async receipt() {
      const step = steps[Math.min(client.asked++, steps.length - 1)]
      if (step instanceof Error) throw step
      return step
    },
  }
  return client
}

function counting(result: Submission | Error): Pick<NodeClient, 'submit'> & { sent: Uint8Array[] } {
  const sent: Uint8Array[] = []
  return {
    sent,
    async submit(bytes) {
      sent.push(bytes)
      if (result instanceof Error) throw result
      return result
    },
  }
}

describe('waiting for a receipt', () => {
  it('goes on through a node that is away for a while', async () => {
    const client = scripted(away(), away(), undefined, proven)
    expect(await waitForReceipt(client, proven.receipt.digest, { waitSeconds: 20 })).toBe(proven)
    expect(client.asked).toBe(4)
  })

  it('of 0 seconds asks once', async () => {
    const client = scripted(undefined)
    expect(await waitForReceipt(client, proven.receipt.digest, { waitSeconds: 0 })).toBeUndefined()
    await expect(waitForReceipt(scripted(away()), proven.receipt.digest, { waitSeconds: 0 })).rejects.toMatchObject({ code: 'node_unreachable' })
    expect(client.asked).toBe(1)
  })

  it('does not ask in a tight loop a node that answers too soon', async () => {
    const client = scripted(undefined)
    await waitForReceipt(client, proven.receipt.digest, { waitSeconds: 0.65 })
    expect(client.asked).toBeLessThanOrEqual(5)
  })

  it('ends at once where an answer does not verify', async () => {
    const lie = new LightClientError('bad_signature', 'a vote is not good')
    await expect(waitForReceipt(scripted(lie), proven.receipt.digest)).rejects.toBe(lie)
    expect(await awaitOutcome(scripted(lie), proven.receipt.digest)).toMatchObject({ kind: 'unknown', reason: 'a vote is not good', cause: lie })
  })

  it('ends at once when it is told to', async () => {
    const stop = new AbortController()
    const waiting = awaitOutcome(ledger.client, 'cd'.repeat(32), { waitSeconds: 60, signal: stop.signal })
    stop.abort()
    expect(await waiting).toMatchObject({ kind: 'unknown', reason: 'stopped waiting' })
  })
})

describe('submitting', () => {
  it('happens once, whatever happens after', async () => {
    for (const submission of [
      { kind: 'submitted', digest: signed.digest, pulse: 2 },
      { kind: 'unknown', reason: 'the connection broke', cause: undefined },
    ] as const) {
      const handing = counting(submission)
      const outcome = await submitAndWait({ client: scripted(away(), undefined), node: handing }, signed, { waitSeconds: 0.3 })
      expect(handing.sent).toEqual([signed.bytes])
      expect(outcome).toMatchObject({ kind: 'unknown', digest: signed.digest, validUntil: signed.body.validUntil })
    }
  })

  it('that was not known to arrive is settled once its receipt is there', async () => {
    const handing = counting({ kind: 'unknown', reason: 'the connection broke', cause: undefined })
    expect(await submitAndWait({ client: scripted(proven), node: handing }, signed)).toMatchObject({ kind: 'settled', receipt: proven })
  })

  it('that is refused asks for no receipt', async () => {
    const client = scripted(proven)
    const handing = counting({ kind: 'refused', code: 'expired', reason: 'too late' })
    expect(await submitAndWait({ client, node: handing }, signed)).toEqual({ kind: 'refused', digest: signed.digest, code: 'expired', reason: 'too late' })
    expect(client.asked).toBe(0)
  })

  it('throws where nothing was taken', async () => {
    const halted = new SionError('chain_halted', 'too few validators run')
    await expect(submitAndWait({ client: scripted(proven), node: counting(halted) }, signed)).rejects.toBe(halted)
  })

  it('does not happen where the digest could not be written down, or all was called off', async () => {
    const handing = counting({ kind: 'submitted', digest: signed.digest, pulse: 2 })
    const full = new Error('disk full')
    const parts = { client: scripted(proven), node: handing }
    await expect(submitAndWait(parts, signed, { onSend: () => Promise.reject(full) })).rejects.toBe(full)
    await expect(submitAndWait(parts, signed, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/)
    expect(handing.sent).toEqual([])
  })
})

describe('a payment', () => {
  it('is shown before it is signed, and settled by its verified receipt', async () => {
    const seen: string[] = []
    const outcome = await pay(ledger, dana, {
      to: bob.account,
      amount: 1_500_000n,
      names: () => 'bob',
      onIntent: (sentence) => void seen.push(sentence),
      onSend: ({ digest }) => void seen.push(digest),
    })
    expect(outcome).toMatchObject({ kind: 'settled', receipt: { chain: node.chain, pinned: true } })
    expect(seen).toEqual([expect.stringMatching(/^Pay 1\.5 USD to bob\. Fee 0\.0011 USD; valid until Pulse \d+\.$/), outcome.digest])
    expect((await provenAccount(ledger.client, bob.account)).account.balance).toBe(1_500_000n)
  })

  it('whose intent is not agreed to is neither signed nor sent', async () => {
    const before = (await provenAccount(ledger.client, dana.account)).account.balance
    const no = new Error('too much')
    let signatures = 0
    const wary = { ...dana, sign: (message: Uint8Array) => ((signatures += 1), dana.sign(message)) }
    await expect(pay(ledger, wary, { to: bob.account, amount: 1n, onIntent: () => Promise.reject(no) })).rejects.toBe(no)
    expect(signatures).toBe(0)
    expect((await provenAccount(ledger.client, dana.account)).account.balance).toBe(before)
  })

  it('to oneself fails, by a receipt', async () => {
    expect(await pay(ledger, dana, { to: dana.account, amount: 1n })).toMatchObject({
      kind: 'failed',
      receipt: { receipt: { outcome: { kind: 'failed', reason: expect.stringContaining('oneself') } } },
    })
  })

  it('for which the node shows another account’s state is not signed', async () => {
    const proxy = await lyingProxy(node.url)
    try {
      // The node shows another account's state in place of the payer's.
      const response = await fetch(`${node.url}/v1/objects/${bob.account}`)
      const body: unknown = await response.json()
      proxy.lie = ({ path }) => (path.startsWith('/v1/objects/') ? { body } : undefined)
      await expect(pay(ledgerAt(proxy.url), dana, { to: bob.account, amount: 1n })).rejects.toMatchObject({ code: 'wrong_object' })
    } finally {
      await proxy.stop()
    }
  })

  it('is one debit, however often its bytes are handed in', async () => {
    const { account, pulse } = await provenAccount(ledger.client, dana.account)
    const body = buildTransfer({ wallet: dana, chain: node.chain, to: bob.account, amount: 1_000_000n, pulse })
    const once = await signTransaction(dana, body, { keysKnown: account.keys !== undefined, dual: account.dual })
    const outcomes = await Promise.all(Array.from({ length: 5 }, () => submitAndWait(ledger, once)))
    expect(outcomes.every(({ kind }) => kind === 'settled')).toBe(true)
    expect(await submitAndWait(ledger, once)).toMatchObject({ kind: 'settled' })
    expect((await provenAccount(ledger.client, dana.account)).account.balance).toBe(account.balance - 1_001_100n)
  })
})
