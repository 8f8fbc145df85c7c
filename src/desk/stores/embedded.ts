import { open, type Database, type RootDatabase } from 'lmdb'
import { SionError, type Id, fromHex, toHex } from '../../codec/index.js'
import {
  newerFormat,
  storeUnavailable,
  TAB_FORMAT,
  versionOf,
  type DeskStore,
  type Due,
  type StoredTab,
  type Swap,
  type Swapped,
} from '../store.js'

const FORMAT_KEY = new TextEncoder().encode('format')

/**
 * Tabs in a folder, in LMDB: one machine, any number of processes on it (`sion desk` looks in while a server runs).
 *
 * A swap resolves after its transaction was flushed to the disk; swaps that meet are flushed together, so the disk's
 * fsync rate bounds one client and not many. Costs two files; the folder is made if it is missing.
 * @throws SionError `store_unavailable` where the folder cannot be used, `store_newer_format`.
 */
export function embeddedStore(folder: string): DeskStore {
  return new EmbeddedStore(folder)
}

class EmbeddedStore implements DeskStore {
  readonly #root: RootDatabase<Uint8Array, Uint8Array>
  readonly #tabs: Database<Uint8Array, Uint8Array>
  readonly #jumps: Database<Uint8Array, Uint8Array>
  /** Stream → due time and Pulse. As many entries as streams have something unsettled. */
  readonly #due: Database<Uint8Array, Uint8Array>
  readonly #leases: Database<Uint8Array, Uint8Array>
  #closed = false

  constructor(folder: string) {
    const binary = { encoding: 'binary', keyEncoding: 'binary' } as const
    try {
      this.#root = open<Uint8Array, Uint8Array>({
        ...binary,
        path: folder,
        // A folder, also where its name has a dot in it.
        noSubdir: false,
        maxDbs: 8,
        // A commit then includes its flush: "resolved" means "on the disk".
        overlappingSync: false,
      })
      // LMDB compares these versions itself, in the writing thread: a swap needs no transaction held open from here.
      this.#tabs = this.#root.openDB<Uint8Array, Uint8Array>('tabs', { ...binary, useVersions: true })
      this.#jumps = this.#root.openDB<Uint8Array, Uint8Array>('jumps', binary)
      this.#due = this.#root.openDB<Uint8Array, Uint8Array>('due', binary)
      this.#leases = this.#root.openDB<Uint8Array, Uint8Array>('leases', binary)
    } catch (cause) {
      throw storeUnavailable(cause)
    }
    const format = this.#root.get(FORMAT_KEY)?.[0]
    if (format === undefined) this.#root.putSync(FORMAT_KEY, Uint8Array.of(TAB_FORMAT))
    else if (format > TAB_FORMAT) {
      void this.#root.close()
      throw newerFormat(format)
    }
  }

  load(stream: Id): Promise<StoredTab | undefined> {
    return this.#attempt(() => Promise.resolve(this.#load(keyOf(stream))))
  }

  swap(change: Swap): Promise<Swapped> {
    return this.#attempt(async () => {
      const { stream, version, tab, jumps, due } = change
      const key = keyOf(stream)
      const write = (): void => {
        void this.#tabs.put(key, tab, versionOf(tab))
        if (jumps !== undefined) void this.#jumps.put(key, jumps)
        if (due === 'never') void this.#due.remove(key)
        else if (due !== undefined) void this.#due.put(key, dueBytes(due))
      }
      const written = version === 0 ? await this.#tabs.ifNoExists(key, write) : await this.#tabs.ifVersion(key, version, write)
      return written ? { swapped: true } : { swapped: false, current: this.#load(key) }
    })
  }

  remove(stream: Id, version: number): Promise<boolean> {
    return this.#attempt(() => {
      const key = keyOf(stream)
      return this.#tabs.ifVersion(key, version, () => {
        void this.#tabs.remove(key)
        void this.#jumps.remove(key)
        void this.#due.remove(key)
      })
    })
  }

  due(now: Due, limit: number): Promise<Id[]> {
    return this.#attempt(() => {
      const streams: Id[] = []
      for (const { key, value } of this.#due.getRange()) {
        const view = viewOf(value)
        if (view.getFloat64(0) > now.at && view.getFloat64(8) > now.pulse) continue
        streams.push(toHex(key))
        if (streams.length === limit) break
      }
      return Promise.resolve(streams)
    })
  }

  streams(): Promise<Id[]> {
    return this.#attempt(() => Promise.resolve([...this.#tabs.getKeys()].map((key) => toHex(key))))
  }

  lease(stream: Id, owner: string, { now, milliseconds }: { now: number; milliseconds: number }): Promise<boolean> {
    const key = keyOf(stream)
    const ours = new TextEncoder().encode(owner)
    return this.#attempt(() =>
      this.#leases.transaction(() => {
        const held = this.#leases.get(key)
        if (held !== undefined && viewOf(held).getFloat64(0) > now && !same(held.subarray(8), ours)) return false
        const bytes = new Uint8Array(8 + ours.length)
        viewOf(bytes).setFloat64(0, now + milliseconds)
        bytes.set(ours, 8)
        void this.#leases.put(key, bytes)
        return true
      }),
    )
  }

  release(stream: Id, owner: string): Promise<void> {
    const key = keyOf(stream)
    return this.#attempt(async () => {
      await this.#leases.transaction(() => {
        const held = this.#leases.get(key)
        if (held !== undefined && same(held.subarray(8), new TextEncoder().encode(owner))) void this.#leases.remove(key)
      })
    })
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#root.close()
  }

  #load(key: Uint8Array): StoredTab | undefined {
    const tab = this.#tabs.get(key)
    return tab === undefined ? undefined : { tab, jumps: this.#jumps.get(key) ?? new Uint8Array(0) }
  }

  /** Whatever LMDB throws (disk full, no permission) means the same to the desk. Once closed it would not even throw. */
  async #attempt<T>(operation: () => Promise<T>): Promise<T> {
    try {
      if (this.#closed) throw new Error('the store was closed')
      return await operation()
    } catch (error) {
      throw error instanceof SionError ? error : storeUnavailable(error)
    }
  }
}

function keyOf(stream: Id): Uint8Array {
  return fromHex(stream, 'stream', 32)
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function dueBytes(due: Due): Uint8Array {
  const bytes = new Uint8Array(16)
  const view = viewOf(bytes)
  view.setFloat64(0, due.at)
  view.setFloat64(8, due.pulse)
  return bytes
}

function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at])
}
