import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isId, SionError, type Id } from '../../codec/index.js'
import type { SeenKnowledge } from '../../light/index.js'
import { makeFolder } from '../make-folder.js'
import { errorCode, writeDurably } from '../streams/durable-file.js'

/**
 * The knowledge log of each chain as this machine last saw it, in `<home>/knowledge/<chain>.json`: a node that shows a log
 * which does not begin with that has taken claims back. Only ever replaced by a log that is proven to have grown from it.
 */
export interface KnowledgeMemory {
  /** @throws SionError `knowledge_unreadable`: forgetting silently would be what a lying node hopes for. */
  load(chain: Id): Promise<SeenKnowledge | undefined>
  save(chain: Id, seen: SeenKnowledge): Promise<void>
}

export function openKnowledgeMemory(home: string): KnowledgeMemory {
  const folder = join(home, 'knowledge')
  const pathOf = (chain: Id): string => join(folder, `${chain}.json`)
  return {
    async load(chain) {
      const path = pathOf(chain)
      const unreadable = (why: string, cause?: unknown): SionError =>
        new SionError('knowledge_unreadable', `${path} ${why}: remove it to begin anew with the log as the node shows it`, { cause })
      const text = await readFile(path, 'utf8').catch((error: unknown) => {
        if (errorCode(error) === 'ENOENT') return undefined
        throw unreadable('cannot be read', error)
      })
      if (text === undefined) return undefined
      const json = parsed(text)
      if (!isSeen(json)) throw unreadable('is not what was written there')
      return { size: json.size, root: json.root }
    },
    async save(chain, { size, root }) {
      makeFolder(folder)
      await writeDurably(pathOf(chain), `${JSON.stringify({ version: 1, size, root })}\n`)
    },
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isSeen(json: unknown): json is { size: number; root: Id } {
  if (typeof json !== 'object' || json === null || !('version' in json) || json.version !== 1) return false
  return 'size' in json && Number.isSafeInteger(json.size) && Number(json.size) >= 0 && 'root' in json && isId(json.root)
}
