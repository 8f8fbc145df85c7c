import { beforeAll, describe, expect, it } from 'vitest'
import { digestOf, encodeBody, encodeReceipt } from '../../../src/ledger/index.js'
import { checkAllReceipts, checkBody, checkReceipt, type ReceiptProof } from '../../../src/light/index.js'
import { leafHash, LogTree, nodeHash } from '../../../src/merkle/index.js'
import { toHex } from '../../../src/codec/index.js'
import type { Header } from '../../../src/pulse/index.js'
import { refuses } from '../../support/refusals.js'
import { flipped, signedChain, signedPulse, testId, type SignedChain, type SignedPulse } from '../../support/signed-chain.js'

let chain: SignedChain
let pulse: SignedPulse
/** Five receipts: the last leaf of an odd row has a short path. */
let entries: SignedPulse['receipts']

beforeAll(async () => {
  chain = signedChain([1])
  pulse = await signedPulse(chain, [], {}, 5, new Map())
  entries = pulse.receipts
})

const proofOf = (index: number): ReceiptProof => ({ index, size: 5, path: pulse.receiptLog.inclusion(index) })
const check = (index: number, proof: ReceiptProof, header: Header = pulse.header): unknown =>
  checkReceipt(entries[index]!.bytes, proof, header, entries[index]!.receipt.digest)

describe('a receipt', () => {
  it('is proven at its place, whichever of the Pulse it is', () => {
    for (const { receipt } of entries) expect(check(receipt.index, proofOf(receipt.index))).toEqual(receipt)
  })

  it('of another transaction than was asked for is refused, though it is proven', async () => {
    await refuses('wrong_receipt', () => checkReceipt(entries[1]!.bytes, proofOf(1), pulse.header, entries[0]!.receipt.digest))
  })

  it('with another payee, amount, outcome, fee or purpose of its own is not proven', async () => {
    const { receipt } = entries[0]!
    const [event] = receipt.events
    if (event?.kind !== 'Transferred') throw new Error('a transfer was expected')
    const [[to, amount]] = event.outputs as [[string, bigint]]
    for (const forged of [
      { ...receipt, events: [{ ...event, outputs: [[testId('thief'), amount] as [string, bigint]] }] },
      { ...receipt, events: [{ ...event, outputs: [[to, amount + 1n] as [string, bigint]] }] },
      { ...receipt, events: [] },
      { ...receipt, fee: 0n },
      { ...receipt, outcome: { kind: 'failed' as const, reason: 'insufficient balance' } },
    ]) {
      await refuses('receipt_not_proven', () => checkReceipt(encodeReceipt(forged), proofOf(0), pulse.header, receipt.digest))
    }
  })

  it('that says another Pulse than its header is refused', async () => {
    await refuses('receipt_wrong_pulse', () => check(0, proofOf(0), { ...pulse.header, number: 2 }))
  })

  it('proven at another index than it says is refused', async () => {
    await refuses('receipt_wrong_index', () => check(0, { ...proofOf(0), index: 1 }))
    await refuses('receipt_wrong_index', () => check(0, proofOf(1)))
  })

  it('moved to another index, with the proof moved along, is not proven', async () => {
    const moved = encodeReceipt({ ...entries[0]!.receipt, index: 1 })
    await refuses('receipt_not_proven', () => checkReceipt(moved, proofOf(1), pulse.header, entries[0]!.receipt.digest))
  })

  it('proven in a tree of another size than the header says is refused', async () => {
    for (const size of [0, 1, 4, 6, 8, 2 ** 40]) await refuses('receipt_wrong_size', () => check(0, { ...proofOf(0), size }))
    await refuses('receipt_wrong_size', () => check(0, proofOf(0), { ...pulse.header, receiptCount: 6 }))
  })

  it('with a path too long, too short, reordered, or with one node changed is not proven', async () => {
    const { path } = proofOf(2)
    const paths: Uint8Array[][] = [
      [],
      path.slice(1),
      path.slice(0, -1),
      [...path, path[0]!],
      [...path].reverse(),
      ...path.map((node, at) => path.map((same, place) => (place === at ? flipped(node, 31) : same))),
      path.map((node) => node.subarray(1)),
    ]
    for (const wrong of paths) await refuses('receipt_not_proven', () => check(2, { ...proofOf(2), path: wrong }))
  })

  it('with an index past the count is not proven, whatever the proof says', async () => {
    const beyond = encodeReceipt({ ...entries[0]!.receipt, index: 5 })
    await refuses('receipt_not_proven', () =>
      checkReceipt(beyond, { index: 5, size: 5, path: [] }, pulse.header, entries[0]!.receipt.digest),
    )
  })

  it('of a Pulse with no receipts at all is not proven', async () => {
    const alone = encodeReceipt({ ...entries[0]!.receipt, index: 0 })
    await refuses('receipt_not_proven', () =>
      checkReceipt(alone, { index: 0, size: 0, path: [] }, { ...pulse.header, receiptCount: 0 }, entries[0]!.receipt.digest),
    )
  })

  it('under another root is not proven', async () => {
    await refuses('receipt_not_proven', () => check(0, proofOf(0), { ...pulse.header, receiptsRoot: testId('another root') }))
  })

  it('cannot be two nodes passed off as an entry: those bytes are no receipt', async () => {
    const [a, b] = entries.map(({ bytes }) => leafHash(bytes))
    const node = Uint8Array.of(...a!, ...b!)
    const header = { ...pulse.header, receiptCount: 1, receiptsRoot: toHex(nodeHash(a!, b!)) }
    await refuses('not_canonical', () => checkReceipt(node, { index: 0, size: 1, path: [] }, header, entries[0]!.receipt.digest))
  })

  it('with any byte flipped is refused', () => {
    const { bytes, receipt } = entries[3]!
    for (let at = 0; at < bytes.length; at++) {
      expect(() => checkReceipt(flipped(bytes, at), proofOf(3), pulse.header, receipt.digest)).toThrow(
        expect.objectContaining({ name: 'LightClientError' }),
      )
    }
  })
})

describe('all receipts of a Pulse', () => {
  const all = (): Uint8Array[] => entries.map(({ bytes }) => bytes)

  it('are believed when they make up root and count', () => {
    expect(checkAllReceipts(all(), pulse.header)).toEqual(entries.map(({ receipt }) => receipt))
  })

  it('with one left out, twice, or two exchanged are refused', async () => {
    const [a, b, c, d, e] = all() as [Uint8Array, Uint8Array, Uint8Array, Uint8Array, Uint8Array]
    for (const wrong of [[a, b, c, d], [b, c, d, e], [a, b, c, d, e, e], [a, c, b, d, e], []]) {
      await refuses('receipts_incomplete', () => checkAllReceipts(wrong, pulse.header))
    }
  })

  it('cannot be padded by repeating the last: [a,b,c] and [a,b,c,c] have different roots', async () => {
    const three = all().slice(0, 3)
    const header = { ...pulse.header, receiptCount: 3, receiptsRoot: toHex(LogTree.from(three.map(leafHash)).root()) }
    checkAllReceipts(three, header)
    await refuses('receipts_incomplete', () => checkAllReceipts([...three, three[2]!], header))
    await refuses('receipts_incomplete', () => checkAllReceipts([...three, three[2]!], { ...header, receiptCount: 4 }))
  })

  it('that the validators certified out of order are refused', async () => {
    const swapped = [all()[1]!, all()[0]!]
    const header = { ...pulse.header, receiptCount: 2, receiptsRoot: toHex(LogTree.from(swapped.map(leafHash)).root()) }
    await refuses('receipt_wrong_index', () => checkAllReceipts(swapped, header))
    await refuses('receipt_wrong_pulse', () => checkAllReceipts(all(), { ...pulse.header, number: 9 }))
  })
})

describe('a published body', () => {
  it('is the one that hashes to the digest', () => {
    const { body, receipt } = entries[0]!
    expect(checkBody(encodeBody(body), receipt.digest, chain.trust.chain)).toEqual(body)
  })

  it('of another transaction, or changed in any byte, is refused', async () => {
    const { body, receipt } = entries[0]!
    await refuses('wrong_body', () => checkBody(encodeBody(entries[1]!.body), receipt.digest, chain.trust.chain))
    const bytes = encodeBody(body)
    for (let at = 0; at < bytes.length; at++) {
      expect(() => checkBody(flipped(bytes, at), receipt.digest, chain.trust.chain)).toThrow(
        expect.objectContaining({ name: 'LightClientError' }),
      )
    }
    await refuses('not_canonical', () => checkBody(bytes.subarray(1), receipt.digest, chain.trust.chain))
  })

  it('for another chain is refused', async () => {
    const body = { ...entries[0]!.body, chain: testId('another chain') }
    await refuses('wrong_chain', () => checkBody(encodeBody(body), digestOf(body), chain.trust.chain))
  })
})
