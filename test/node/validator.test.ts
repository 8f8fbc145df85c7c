import { describe, expect, it } from 'vitest'
import type { Id } from '../../src/codec/index.js'
import { keysFromSeed } from '../../src/crypto/keys.js'
import type { Signatures } from '../../src/crypto/signatures.js'
import { EMPTY_ACCOUNT, encodeObject, objectHash, type LedgerObject } from '../../src/ledger/index.js'
import { StateTree } from '../../src/merkle/index.js'
import { chainFrom, genesisTip, nextHeader, stateView, tipOf } from '../../src/node/chain.js'
import { newDevnet } from '../../src/node/devnet-genesis.js'
import { proposalOf, type Proposal } from '../../src/node/proposal.js'
import { commitmentsOf, executePulse } from '../../src/node/pulse-execution.js'
import { Validator } from '../../src/node/validator.js'
import type { Header } from '../../src/pulse/index.js'
import { pay, signer, unsigned, NOTHING_DONE } from './execution-support.js'

const alice = signer(1)

/** One validator on a fresh chain where alice has money, and a proposal it should agree to. */
function setting() {
  const { genesis, secrets } = newDevnet(1, 1_000)
  const chain = chainFrom(genesis)
  const account: LedgerObject = { ...EMPTY_ACCOUNT, balance: 50_000n }
  const objects = new Map<Id, Uint8Array>([[alice.id, encodeObject(account)]])
  const source = { object: (id: Id) => objects.get(id) }
  const tree = StateTree.empty.update(new Map([[alice.id, objectHash(encodeObject(account))]]))
  const parent = genesisTip(genesis, tree)
  let recorded: { number: number; headerHash: Id } | undefined
  const book = { voteOf: () => recorded, expiredIn: () => [] }
  const signed: string[] = []
  const signatures: Signatures = {
    async sign(scheme) {
      signed.push(scheme)
      return new Uint8Array(1)
    },
    verify: () => Promise.reject(new Error('a validator verifies nothing')),
  }
  const validator = new Validator(0, keysFromSeed(secrets.validatorSeeds[0] ?? new Uint8Array()), chain, parent, source, book, signatures)
  const { chain: _, ...body } = unsigned(alice, 1, pay('b'.repeat(64), 10n)).body
  const tx = { ...unsigned(alice, 1, pay('b'.repeat(64), 10n)), body: { ...body, chain: chain.id } }
  const effects = executePulse(stateView(tree, source), { expired: [], transactions: [tx] }, { chain: chain.id, pulse: 1, parameters: chain.parameters })
  const commitments = commitmentsOf(tree, effects)
  const header = nextHeader(chain, parent, { time: 2_000, round: 1 }, commitments)
  return { validator, parent, chain, objects, tx, header, commitments, signed, record: (vote: typeof recorded) => (recorded = vote) }
}

describe('a validator', () => {
  it('agrees with a header that it gets too', () => {
    const { validator, header, tx } = setting()
    expect(validator.examine(proposalOf(header, [tx]))).toBeUndefined()
  })

  const other = 'd'.repeat(64)
  const lies: [string, (header: Header) => Header][] = [
    ['another chain', (header) => ({ ...header, chain: other })],
    ['another epoch', (header) => ({ ...header, epoch: 1 })],
    ['a number that is not next', (header) => ({ ...header, number: 2 })],
    ['a round that does not grow', (header) => ({ ...header, round: 0 })],
    ['another parent', (header) => ({ ...header, parent: other })],
    ['a time that does not grow', (header) => ({ ...header, time: 1_000 })],
    ['a beacon of its own choice', (header) => ({ ...header, beacon: other })],
    ['another state root', (header) => ({ ...header, stateRoot: other })],
    ['another knowledge root', (header) => ({ ...header, knowledgeRoot: other })],
    ['another receipts root', (header) => ({ ...header, receiptsRoot: other })],
    ['another count of receipts', (header) => ({ ...header, receiptCount: 2 })],
    ['a data root where there is no data', (header) => ({ ...header, dataRoot: other })],
    ['forced intents that nobody posted', (header) => ({ ...header, forcedPending: 1 })],
    ['another configuration', (header) => ({ ...header, configHash: other })],
    ['another validator set', (header) => ({ ...header, validatorSetHash: other })],
  ]
  it.each(lies)('does not agree with %s', (_, lie) => {
    const { validator, header, tx } = setting()
    expect(validator.examine(proposalOf(lie(header), [tx]))).toMatch(/./)
  })

  it('does not agree with a list that is not the one behind the header', () => {
    const { validator, header, tx } = setting()
    const replay = { ...tx, body: { ...tx.body, nonce: '1'.repeat(32) } }
    for (const list of [[], [replay], [tx, replay], [tx, tx]]) expect(validator.examine(proposalOf(header, list))).toMatch(/./)
  })

  it('does not execute on objects that are not those of its state', () => {
    const { validator, header, tx, objects } = setting()
    objects.set(alice.id, encodeObject({ ...EMPTY_ACCOUNT, balance: 60_000n }))
    expect(validator.examine(proposalOf(header, [tx]))).toMatch(/as the state root commits to it/)
  })

  it('signs only what it examined and what is recorded', async () => {
    const { validator, header, tx, record, signed } = setting()
    const proposal: Proposal = proposalOf(header, [tx])
    const vote = { number: 1, headerHash: proposal.headerHash }
    record(vote)
    await expect(validator.sign('ml-dsa-44', proposal)).rejects.toMatchObject({ code: 'vote_not_recorded' })
    expect(validator.examine(proposal)).toBeUndefined()
    for (const otherwise of [undefined, { ...vote, headerHash: other }, { ...vote, number: 2 }]) {
      record(otherwise)
      await expect(validator.sign('ml-dsa-44', proposal)).rejects.toMatchObject({ code: 'vote_not_recorded' })
    }
    expect(signed).toEqual([])
    record(vote)
    await validator.sign('slh-dsa-sha2-128f', proposal)
    expect(signed).toEqual(['slh-dsa-sha2-128f'])
  })

  it('does not agree with a second header for a number it voted on', () => {
    const { validator, header, tx, record } = setting()
    record({ number: 1, headerHash: other })
    expect(validator.examine(proposalOf(header, [tx]))).toMatch(/voted for dddddddd as Pulse 1/)
  })

  it('goes on from a certified Pulse, whether it voted or not', () => {
    for (const votes of [true, false]) {
      const { validator, header, tx, chain, commitments } = setting()
      if (votes) validator.examine(proposalOf(header, [tx]))
      const tip = tipOf(header, commitments.tree)
      validator.follow(tip)
      const next = nextHeader(chain, tip, { time: 3_000, round: 2 }, commitmentsOf(tip.tree, { ...NOTHING_DONE, writes: new Map() }))
      expect(validator.examine(proposalOf(next, []))).toBeUndefined()
    }
  })
})
