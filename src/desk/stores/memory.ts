import type { Id } from '../../codec/index.js'
import { versionOf, type DeskStore, type Due, type StoredTab, type Swap, type Swapped } from '../store.js'

const SWAPPED: Swapped = { swapped: true }

interface Entry extends StoredTab {
  readonly version: number
  readonly due: Due | undefined
}

/**
 * Tabs in this process's memory: for tests, and for measuring what the desk itself costs. A process that ends loses what
 * it had not settled, so nothing chooses this store by itself.
 */
export function memoryStore(): DeskStore {
  const tabs = new Map<Id, Entry>()
  const leases = new Map<Id, { owner: string; until: number }>()
  return {
    load: (stream) => Promise.resolve(tabs.get(stream)),
    swap(change: Swap) {
      const { stream, tab } = change
      const entry = tabs.get(stream)
      if ((entry?.version ?? 0) !== change.version) return Promise.resolve({ swapped: false, current: entry })
      const due = change.due === undefined ? entry?.due : change.due === 'never' ? undefined : change.due
      const jumps = change.jumps ?? entry?.jumps ?? new Uint8Array(0)
      tabs.set(stream, { version: versionOf(tab), tab, jumps, due })
      return Promise.resolve(SWAPPED)
    },
    remove(stream, version) {
      const found = tabs.get(stream)?.version === version
      if (found) tabs.delete(stream)
      return Promise.resolve(found)
    },
    due(now, limit) {
      const streams: Id[] = []
      for (const [stream, { due }] of tabs) {
        if (due !== undefined && (due.at <= now.at || due.pulse <= now.pulse)) streams.push(stream)
        if (streams.length === limit) break
      }
      return Promise.resolve(streams)
    },
    streams: () => Promise.resolve([...tabs.keys()]),
    lease(stream, owner, { now, milliseconds }) {
      const held = leases.get(stream)
      if (held !== undefined && held.owner !== owner && held.until > now) return Promise.resolve(false)
      leases.set(stream, { owner, until: now + milliseconds })
      return Promise.resolve(true)
    },
    release(stream, owner) {
      if (leases.get(stream)?.owner === owner) leases.delete(stream)
      return Promise.resolve()
    },
    close: () => Promise.resolve(),
  }
}
