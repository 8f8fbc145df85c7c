import { constants } from 'node:fs'
import { open, readdir, readFile, unlink, writeFile, rename, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { InputError, messageOf, quote, shortId, SionError, type Id } from '../../codec/index.js'
import { makeFolder } from '../make-folder.js'
import { errorCode, syncFolder, writeDurably } from './durable-file.js'
import { PayerChain } from './payer-chain.js'
import { openPositionFile, readPosition } from './position-file.js'
import { lockStream } from './stream-lock.js'
import { StreamPayer, type LedgerSays, type Position } from './stream-payer.js'
import { formatSecret, formatTerms, parseSecret, parseTerms, type LatestTerms, type StreamSecret } from './stream-secret.js'

export interface OpenPayerOptions {
  /** Told while the chain is set up. */
  onProgress?: ((done: number, total: number) => void) | undefined
  /** Asks the ledger where that is needed: `StreamPayerOptions.refresh`. */
  refresh?: (() => Promise<LedgerSays | undefined>) | undefined
}

/**
 * The streams that this machine pays from, in `<home>/streams`:
 *
 *     <id>.json         the secret: written once, before the opening transaction is sent, and never changed
 *     <id>.position     how far it was paid: written before each payment
 *     <id>.terms.json   escrow and last Pulse as the ledger had them last: only saves asking
 *     <id>.lock.…       who pays from it now
 */
export interface StreamFiles {
  readonly folder: string
  pathOf(stream: Id): string
  /** Durable when it resolves. */
  save(secret: StreamSecret): Promise<void>
  /** Removes all of a stream that never came to be, or is closed. */
  forget(stream: Id): Promise<void>
  /** Ids, sorted. */
  list(): Promise<Id[]>
  /** The one stream whose id begins so. @throws InputError naming `field`: none, or several. */
  find(idOrPrefix: string, field: string): Promise<Id>
  /** @throws SionError `unknown_stream`, `stream_exposed`, `stream_malformed`, `stream_newer`, `stream_unreadable`. */
  load(stream: Id): Promise<StreamSecret>
  terms(secret: StreamSecret): Promise<LatestTerms>
  /** Remembers what the ledger said. Not being able to is no error. */
  remember(stream: Id, terms: LatestTerms): Promise<void>
  position(stream: Id): Promise<Position>
  /** Sets the position, for a record that was lost. @throws SionError `stream_in_use`. */
  setPosition(stream: Id, position: Position): Promise<void>
  /** Takes the stream for this process and sets up its chain. Close the payer to let it go. @throws SionError `stream_in_use`. */
  openPayer(stream: Id, options?: OpenPayerOptions): Promise<StreamPayer>
}

const SECRET_FILE = /^([0-9a-f]{64})\.json$/
/** No secret is longer: more of a file is not read. */
const MAX_SECRET_BYTES = 4_096

export function openStreamFiles(home: string): StreamFiles {
  const folder = join(home, 'streams')
  const pathOf = (stream: Id): string => join(folder, `${stream}.json`)
  const positionOf = (stream: Id): string => join(folder, `${stream}.position`)
  const termsOf = (stream: Id): string => join(folder, `${stream}.terms.json`)

  async function list(): Promise<Id[]> {
    const entries = await readdir(folder).catch((error: unknown) => {
      if (errorCode(error) === 'ENOENT') return []
      throw new SionError('stream_unreadable', `the streams in ${folder} cannot be read: ${messageOf(error)}`, { cause: error })
    })
    return entries.flatMap((entry) => SECRET_FILE.exec(entry)?.[1] ?? []).sort()
  }

  async function load(stream: Id): Promise<StreamSecret> {
    const text = await readSecretFile(pathOf(stream), stream)
    if (text === undefined) throw new SionError('unknown_stream', `there is no stream ${stream} in ${folder}`)
    return parseSecret(text, stream, pathOf(stream))
  }

  async function terms(secret: StreamSecret): Promise<LatestTerms> {
    const text = await readFile(termsOf(secret.stream), 'utf8').catch(() => '')
    const latest = parseTerms(text)
    // Escrow and end only grow.
    if (latest === undefined || latest.escrow < secret.escrow) return { escrow: secret.escrow, lastPulse: secret.lastPulse }
    return latest
  }

  return {
    folder,
    pathOf,
    list,
    load,
    terms,

    async save(secret) {
      try {
        makeFolder(folder)
        // The folder may be new, and so its entry above it.
        await syncFolder(home)
        await writeDurably(pathOf(secret.stream), formatSecret(secret))
      } catch (cause) {
        throw new SionError('stream_unwritable', `the secret of stream ${shortId(secret.stream)} cannot be written: ${messageOf(cause)}; nothing was sent`, { cause })
      }
    },

    async forget(stream) {
      for (const path of [pathOf(stream), positionOf(stream), termsOf(stream)]) {
        await unlink(path).catch((error: unknown) => {
          if (errorCode(error) !== 'ENOENT') throw error
        })
      }
      await syncFolder(folder)
    },

    async find(idOrPrefix, field) {
      if (!/^[0-9a-f]{4,64}$/.test(idOrPrefix)) {
        throw new InputError(field, `expected a stream's id, or its first digits (at least 4 of 64), not ${quote(idOrPrefix, 80)}`)
      }
      const found = (await list()).filter((id) => id.startsWith(idOrPrefix))
      const [only] = found
      if (only === undefined) throw new InputError(field, `there is no stream ${quote(idOrPrefix, 64)} in ${folder}`, { code: 'unknown_stream' })
      if (found.length > 1) throw new InputError(field, `${quote(idOrPrefix, 64)} begins the ids of ${found.length} streams: give more digits`)
      return only
    },

    async remember(stream, latest) {
      const path = termsOf(stream)
      const aside = `${path}.${process.pid}`
      try {
        await writeFile(aside, formatTerms(latest), { mode: 0o600 })
        await rename(aside, path)
      } catch {
        await unlink(aside).catch(() => {})
      }
    },

    position: (stream) => readPosition(positionOf(stream)),

    async setPosition(stream, position) {
      const lock = await lockStream(folder, stream)
      try {
        const log = await openPositionFile(positionOf(stream), position)
        await log.close()
      } finally {
        await lock.release()
      }
    },

    async openPayer(stream, { onProgress, refresh } = {}) {
      const secret = await load(stream)
      const lock = await lockStream(folder, stream)
      try {
        const position = await readPosition(positionOf(stream))
        const next = Math.min(position.used + 1, secret.length)
        const [elements, { escrow }] = await Promise.all([
          PayerChain.build(secret, { next, ...(onProgress === undefined ? {} : { onProgress }) }),
          terms(secret),
        ])
        const log = await openPositionFile(positionOf(stream), position)
        return new StreamPayer({
          terms: { ...termsFrom(secret), escrow },
          elements,
          position,
          log: {
            write: (now) => log.write(now),
            async close() {
              await log.close()
              await lock.release()
            },
          },
          refresh,
        })
      } catch (error) {
        await lock.release()
        throw error
      }
    },
  }
}

function termsFrom({ stream, chain, payer, payee, stepValue }: StreamSecret): Omit<StreamPayer['terms'], 'escrow'> {
  return { stream, chain, payer, payee, stepValue }
}

async function readSecretFile(path: string, stream: Id): Promise<string | undefined> {
  const name = `stream ${shortId(stream)}`
  let file: FileHandle
  try {
    // Without O_NONBLOCK a FIFO put there would hang us.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return undefined
    throw new SionError('stream_unreadable', `${name} cannot be read: ${messageOf(cause)}`, { cause })
  }
  try {
    const stat = await file.stat()
    if (!stat.isFile() || stat.size > MAX_SECRET_BYTES) throw new SionError('stream_malformed', `${name}: ${path} is no stream's file`)
    if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
      const mode = (stat.mode & 0o777).toString(8).padStart(3, '0')
      throw new SionError('stream_exposed', `${name}: others may read or change ${path} (mode ${mode}); make it yours alone: chmod 600 ${path}`)
    }
    return await file.readFile('utf8')
  } finally {
    await file.close()
  }
}
