import { InputError, SionError, type Id } from '../codec/index.js'

/**
 * What a desk keeps, durably. A store has no rules: it loads a tab, replaces one if nobody else did meanwhile, and
 * answers which are due. All of a stream's bytes change in one atomic step, or none do.
 *
 * Every method rejects with {@link storeUnavailable} when the store is out of reach; a `swap` that rejects may have
 * happened or not, and the desk finds out when it next loads.
 */
export interface DeskStore {
  load(stream: Id): Promise<StoredTab | undefined>
  /** Durable when it resolves. */
  swap(change: Swap): Promise<Swapped>
  /** Forgets a stream, if its tab is still of that version. */
  remove(stream: Id, version: number): Promise<boolean>
  /** Streams whose time or Pulse has come, at most `limit`, in no order. */
  due(now: Due, limit: number): Promise<Id[]>
  /** Every stream that has a tab. For people and at start, not for each payment. */
  streams(): Promise<Id[]>
  /**
   * Takes or renews `owner`'s lease on settling a stream; false while another owner's lasts. A lease only spares work:
   * nothing goes wrong when two owners settle one stream.
   */
  lease(stream: Id, owner: string, lease: { now: number; milliseconds: number }): Promise<boolean>
  release(stream: Id, owner: string): Promise<void>
  close(): Promise<void>
}

/** The bytes of a tab, and of its checkpoints' paths, which change sixty times less often. */
export interface StoredTab {
  /** Begins with the format (1 byte) and the version (8 bytes, big-endian): what stores compare. */
  readonly tab: Uint8Array
  /** Empty when there are none. */
  readonly jumps: Uint8Array
}

export interface Swap {
  readonly stream: Id
  /** Version of the tab that is replaced; 0 where there must be none. */
  readonly version: number
  /** The new tab, of version `version + 1`. */
  readonly tab: Uint8Array
  /** Left as they are when absent. */
  readonly jumps?: Uint8Array
  /** When it must be looked at again. Left as it is when absent; `never` when all is settled. */
  readonly due?: Due | 'never'
}

/** A stream is due at a time (milliseconds) or once the ledger reaches a Pulse, whichever is first. */
export interface Due {
  readonly at: number
  readonly pulse: number
}

export type Swapped = { readonly swapped: true } | { readonly swapped: false; readonly current: StoredTab | undefined }

/** Bytes that stores compare: format and version. */
export const TAB_PREFIX_LENGTH = 9

export const TAB_FORMAT = 1

/** Format and version as they begin every tab. */
export function tabPrefix(version: number): Uint8Array {
  const prefix = new Uint8Array(TAB_PREFIX_LENGTH)
  writePrefix(new DataView(prefix.buffer), version)
  return prefix
}

export function writePrefix(view: DataView, version: number): void {
  view.setUint8(0, TAB_FORMAT)
  view.setUint32(1, Math.floor(version / 2 ** 32))
  view.setUint32(5, version % 2 ** 32)
}

/**
 * Version of stored tab bytes.
 * @throws SionError `store_newer_format` for a tab that a newer program wrote; InputError for bytes that are no tab.
 */
export function versionOf(tab: Uint8Array): number {
  const format = tab[0]
  if (format !== undefined && format > TAB_FORMAT) throw newerFormat(format)
  if (format !== TAB_FORMAT || tab.length < TAB_PREFIX_LENGTH) throw new InputError('tab', 'not a stored tab')
  const view = new DataView(tab.buffer, tab.byteOffset, tab.byteLength)
  const version = view.getUint32(1) * 2 ** 32 + view.getUint32(5)
  if (!Number.isSafeInteger(version)) throw new InputError('tab', 'not a stored tab: a version above 2^53 − 1')
  return version
}

/** An older program must not write over what it cannot read: it stops and says so. */
export function newerFormat(format: number | string): SionError {
  return new SionError(
    'store_newer_format',
    `the desk's store has format ${format}, and this program knows up to ${TAB_FORMAT}: upgrade this program`,
  )
}

/** HTTP 503: nothing was accepted. There is no other place to keep a tab, least of all memory. */
export function storeUnavailable(cause: unknown): SionError {
  return new SionError('store_unavailable', 'the store of the stream desk is out of reach', { cause })
}
