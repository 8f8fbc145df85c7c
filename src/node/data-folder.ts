import { chmodSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { open, type Database, type RootDatabase } from 'lmdb'
import { messageOf, quote, SionError } from '../codec/index.js'
import { makeFolder } from '../sdk/make-folder.js'
import { processStamp } from '../sdk/process-stamp.js'

/** The layout of the tables. A program that knows only older ones must not touch the folder. */
export const FORMAT = 1

export type Table = Database<Buffer, Uint8Array>

const binary = { encoding: 'binary', keyEncoding: 'binary', cache: false } as const

const FORMAT_KEY = Buffer.from('format')
const OWNER_KEY = Buffer.from('owner')

/**
 * An LMDB environment in a private folder, held by one process at a time. Transactions are synchronous: durable
 * (fdatasync) and visible when they return, so nothing in this process ever sees one half-way.
 */
export class DataFolder {
  readonly #root: RootDatabase<Buffer, Uint8Array>
  readonly #meta: Table

  private constructor(
    readonly path: string,
    root: RootDatabase<Buffer, Uint8Array>,
  ) {
    this.#root = root
    this.#meta = this.table('meta')
  }

  /**
   * Opens, or begins, the folder at `path` and takes it for this process.
   * @throws SionError `data_folder_in_use`, `data_folder_newer`, `data_folder_unusable`.
   */
  static open(path: string): DataFolder {
    const folder = new DataFolder(path, openEnvironment(path))
    try {
      folder.#checkFormat()
      folder.#take()
    } catch (error) {
      void folder.#root.close()
      throw error
    }
    return folder
  }

  table(name: string): Table {
    return this.#root.openDB<Buffer, Uint8Array>(name, binary)
  }

  /** All of `work` or nothing of it, durable when this returns. */
  transaction<T>(work: () => T): T {
    return this.#root.transactionSync(work)
  }

  meta(key: string): Uint8Array | undefined {
    return bytesIn(this.#meta, Buffer.from(key))
  }

  /** Only inside a {@link transaction}. */
  putMeta(key: string, value: Uint8Array): void {
    this.#meta.putSync(Buffer.from(key), Buffer.from(value))
  }

  /** Only inside a {@link transaction}. */
  removeMeta(key: string): void {
    this.#meta.removeSync(Buffer.from(key))
  }

  async close(): Promise<void> {
    this.transaction(() => this.#meta.removeSync(OWNER_KEY))
    await this.#root.close()
  }

  #checkFormat(): void {
    const stored = this.#meta.get(FORMAT_KEY)
    if (stored === undefined) {
      this.transaction(() => this.#meta.putSync(FORMAT_KEY, Buffer.from(String(FORMAT))))
      return
    }
    const format = Number(stored.toString())
    if (format === FORMAT) return
    throw new SionError(
      'data_folder_newer',
      `the data folder ${quote(this.path, 200)} has format ${format}, this version knows format ${FORMAT}: use the version of sion that wrote it, or another folder`,
    )
  }

  /**
   * LMDB lets any number of processes in, and two nodes on one chain would sign against each other. Its write
   * transactions exclude each other across processes: whoever finds no living owner in one becomes the owner.
   */
  #take(): void {
    const mine = JSON.stringify({ pid: process.pid, stamp: processStamp(process.pid) })
    const owner = this.transaction(() => {
      const living = livingOwner(this.#meta.get(OWNER_KEY))
      if (living === undefined) this.#meta.putSync(OWNER_KEY, Buffer.from(mine))
      return living
    })
    if (owner !== undefined) {
      throw new SionError(
        'data_folder_in_use',
        `the data folder ${quote(this.path, 200)} is in use by process ${owner}: stop that one first, or take another folder`,
      )
    }
  }
}

/** A copy: LMDB's buffers are views into memory it uses again. */
export function bytesIn(table: Table, key: Uint8Array): Uint8Array | undefined {
  const value = table.get(key)
  return value === undefined ? undefined : new Uint8Array(value)
}

function openEnvironment(path: string): RootDatabase<Buffer, Uint8Array> {
  try {
    const isNew = !existsSync(join(path, 'data.mdb'))
    if (isNew) {
      makeFolder(path)
      // A start that was killed may have left LMDB's lock file, and no more.
      const other = readdirSync(path).filter((name) => name !== 'lock.mdb')
      if (other.length > 0) throw new Error(`it is no data folder, and holds other files (${quote(other[0] ?? '')})`)
      // It holds validators' keys, whoever made the folder.
      chmodSync(path, 0o700)
    }
    // An overlapping sync would let a commit return before it is on the disk.
    const root = open<Buffer, Uint8Array>({ path, ...binary, maxDbs: 16, overlappingSync: false, noSubdir: false })
    for (const file of ['data.mdb', 'lock.mdb']) chmodSync(join(path, file), 0o600)
    root.readerCheck()
    return root
  } catch (cause) {
    throw new SionError('data_folder_unusable', `cannot use the data folder ${quote(path, 200)}: ${messageOf(cause)}`, { cause })
  }
}

function livingOwner(record: Uint8Array | undefined): number | undefined {
  if (record === undefined) return undefined
  const owner: unknown = JSON.parse(Buffer.from(record).toString())
  if (typeof owner !== 'object' || owner === null || !('pid' in owner) || !('stamp' in owner)) return undefined
  const { pid, stamp } = owner
  return typeof pid === 'number' && processStamp(pid) === stamp ? pid : undefined
}
