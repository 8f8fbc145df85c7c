import { beforeAll, describe, expect, it } from 'vitest'
import { toHex, type Id } from '../../../src/codec/index.js'
import { claimLeaf } from '../../../src/ledger/index.js'
import { checkKnowledge, checkKnowledgeGrew, type KnowledgeEntry, type SeenKnowledge } from '../../../src/light/index.js'
import { LogTree } from '../../../src/merkle/index.js'
import type { Header } from '../../../src/pulse/index.js'
import { refuses } from '../../support/refusals.js'
import { headerOf, signedChain, testId } from '../../support/signed-chain.js'

const claims: Id[] = Array.from({ length: 7 }, (_, at) => testId(`claim ${at}`))
const tree = LogTree.from(claims.map(claimLeaf))
let header: Header

beforeAll(() => {
  header = headerOf(signedChain([1]), { knowledgeRoot: toHex(tree.root()), knowledgeSize: claims.length })
})

const entry = (index: number): KnowledgeEntry => ({ claim: claims[index]!, index, path: tree.inclusion(index) })
const entries = (from: number, to: number): KnowledgeEntry[] => Array.from({ length: to - from }, (_, at) => entry(from + at))
const seenAt = (size: number): SeenKnowledge => ({ size, root: toHex(LogTree.from(claims.slice(0, size).map(claimLeaf)).root()) })

describe('claims of the knowledge log', () => {
  it('are proven from any place on, and past the end there are none', () => {
    expect(checkKnowledge(entries(0, 7), 0, 100, header)).toEqual(claims)
    expect(checkKnowledge(entries(2, 5), 2, 3, header)).toEqual(claims.slice(2, 5))
    expect(checkKnowledge([], 7, 100, header)).toEqual([])
    expect(checkKnowledge([], 0, 0, header)).toEqual([])
  })

  it('of which one is left out, or one is too many, are refused', async () => {
    await refuses('knowledge_incomplete', () => checkKnowledge(entries(0, 6), 0, 100, header))
    await refuses('knowledge_incomplete', () => checkKnowledge(entries(2, 6), 2, 3, header))
    await refuses('knowledge_incomplete', () => checkKnowledge([entry(6)], 7, 100, header))
  })

  it('in another order, or at another place, are refused', async () => {
    await refuses('claim_wrong_index', () => checkKnowledge([entry(1), entry(0)], 0, 2, header))
    await refuses('claim_wrong_index', () => checkKnowledge(entries(1, 3), 0, 2, header))
    await refuses('claim_not_logged', () => checkKnowledge([{ ...entry(1), index: 0 }, { ...entry(0), index: 1 }], 0, 2, header))
  })

  it('that the log does not hold are refused', async () => {
    await refuses('claim_not_logged', () => checkKnowledge([{ ...entry(0), claim: testId('forged') }], 0, 1, header))
    await refuses('claim_not_logged', () => checkKnowledge([{ ...entry(0), path: entry(0).path.slice(1) }], 0, 1, header))
    await refuses('claim_not_logged', () => checkKnowledge([entry(0)], 0, 1, { ...header, knowledgeRoot: testId('root') }))
  })
})

describe('a log that was seen before', () => {
  it('may have grown, from nothing or from any size', () => {
    for (let size = 0; size <= claims.length; size++) checkKnowledgeGrew(seenAt(size), tree.consistency(size), header)
  })

  it('may not have changed, shrunk or forked', async () => {
    const forked = { ...seenAt(3), root: testId('other root') }
    await refuses('knowledge_rewritten', () => checkKnowledgeGrew(forked, tree.consistency(3), header))
    await refuses('knowledge_rewritten', () => checkKnowledgeGrew({ size: 8, root: seenAt(7).root }, [], header))
    await refuses('knowledge_rewritten', () => checkKnowledgeGrew({ size: 7, root: testId('other root') }, [], header))
    await refuses('knowledge_rewritten', () => checkKnowledgeGrew(seenAt(3), tree.consistency(4), header))
    await refuses('knowledge_rewritten', () => checkKnowledgeGrew({ size: 0, root: testId('not empty') }, [], header))
  })
})
