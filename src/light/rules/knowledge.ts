import { fromHex, shortId, type Id } from '../../codec/index.js'
import { claimLeaf } from '../../ledger/index.js'
import { verifyConsistency, verifyInclusion } from '../../merkle/index.js'
import type { Header } from '../../pulse/index.js'
import { LightClientError } from '../errors.js'

/** A claim at its place in the knowledge log, as the node says. */
export interface KnowledgeEntry {
  readonly claim: Id
  readonly index: number
  readonly path: readonly Uint8Array[]
}

/** A knowledge log as a certified header had it: kept by whoever wants to know that it only grew since. */
export interface SeenKnowledge {
  readonly size: number
  readonly root: Id
}

/**
 * The claims of the knowledge log from place `from` on, `limit` of them or all that there are, each proven against a
 * certified header (RFC 9162 §2.1.3). How many there must be follows from the header's size, not from the answer.
 * @throws LightClientError `knowledge_incomplete`, `claim_wrong_index`, `claim_not_logged`.
 */
export function checkKnowledge(entries: readonly KnowledgeEntry[], from: number, limit: number, header: Header): Id[] {
  const { number, knowledgeSize } = header
  const due = Math.max(0, Math.min(limit, knowledgeSize - from))
  if (entries.length !== due) {
    throw new LightClientError('knowledge_incomplete', `${entries.length} claims shown from place ${from} of the knowledge log; Pulse ${number} certifies ${due}`)
  }
  const root = fromHex(header.knowledgeRoot, 'knowledgeRoot', 32)
  return entries.map(({ claim, index, path }, at) => {
    if (index !== from + at) throw new LightClientError('claim_wrong_index', `claim ${shortId(claim)} is shown at place ${index}, where place ${from + at} is due`)
    if (!verifyInclusion(root, knowledgeSize, index, claimLeaf(claim), path)) {
      throw new LightClientError('claim_not_logged', `claim ${shortId(claim)}: its path does not lead to the knowledge root of Pulse ${number}`)
    }
    return claim
  })
}

/**
 * That the log of `header` begins with all that was `seen` (RFC 9162 §2.1.4): claims were added, and none taken back.
 * @throws LightClientError `knowledge_rewritten`.
 */
export function checkKnowledgeGrew(seen: SeenKnowledge, consistency: readonly Uint8Array[], { number, knowledgeSize, knowledgeRoot }: Header): void {
  const [before, now] = [fromHex(seen.root, 'seen.root', 32), fromHex(knowledgeRoot, 'knowledgeRoot', 32)]
  if (!verifyConsistency(seen.size, knowledgeSize, before, now, consistency)) {
    throw new LightClientError(
      'knowledge_rewritten',
      `the knowledge log of Pulse ${number}, ${knowledgeSize} claims, is not shown to begin with the ${seen.size} that were seen before`,
    )
  }
}
