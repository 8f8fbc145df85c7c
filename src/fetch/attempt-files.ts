import { open, readdir, readFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, SionError, toHex } from '../codec/index.js'
import { sha256 } from '../crypto/hash.js'
import { makeFolder } from '../sdk/make-folder.js'
import { processStamp } from '../sdk/process-stamp.js'
import type { Attempt, AttemptLog } from './attempts.js'

/**
 * Attempts as files in a folder: on disk before the payment is sent, gone when it is answered. A file is a buyer's
 * ticket, so only its owner may read it. Several processes may share the folder: a file's name says who holds it
 * (`<call>.<transaction>.<holder>.json`), taking one is renaming it, and what a dead process held is open again.
 */
export function fileAttempts(folder: string, now: () => number = Date.now): AttemptLog {
  const me = holderOf(process.pid) ?? String(process.pid)
  /** What this process holds: its name alone would not tell two calls in it apart. */
  const held = new Set<string>()
  const heldName = (call: string, { transaction }: Attempt): string => `${call}.${transaction}.${me}.json`
  const openName = (call: string, { transaction }: Attempt): string => `${call}.${transaction}.json`

  return {
    async take(call) {
      for (const name of await filesOf(folder, call)) {
        const [, transaction = '', holder] = name.split('.')
        const mine = `${call}.${transaction}.${me}.json`
        if (held.has(mine) || (holder !== 'json' && holder !== me && isAlive(holder))) continue
        held.add(mine)
        try {
          await rename(join(folder, name), join(folder, mine))
          const attempt = await readAttempt(join(folder, mine))
          if (attempt.goodUntil > now()) return attempt
          await unlink(join(folder, mine))
        } catch (error) {
          held.delete(mine)
          // Another process was quicker.
          if (codeOf(error) !== 'ENOENT') throw error
        }
        held.delete(mine)
      }
      return undefined
    },
    async save(call, attempt) {
      makeFolder(folder)
      const name = heldName(call, attempt)
      held.add(name)
      await writeDurably(folder, name, JSON.stringify(attempt))
    },
    async release(call, attempt) {
      const name = heldName(call, attempt)
      await rename(join(folder, name), join(folder, openName(call, attempt))).catch(unlessGone)
      held.delete(name)
    },
    async clear(call, attempt) {
      const name = heldName(call, attempt)
      await unlink(join(folder, name)).catch(unlessGone)
      held.delete(name)
    },
  }
}

async function filesOf(folder: string, call: string): Promise<string[]> {
  try {
    const names = await readdir(folder)
    return names.filter((name) => name.startsWith(`${call}.`) && name.endsWith('.json')).sort()
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return []
    throw error
  }
}

/** The file appears whole or not at all, and after a power cut it is there. */
async function writeDurably(folder: string, name: string, text: string): Promise<void> {
  const path = join(folder, name)
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
  const directory = await open(folder, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

async function readAttempt(path: string): Promise<Attempt> {
  const text = await readFile(path, 'utf8')
  try {
    return parseAttempt(text)
  } catch (error) {
    throw new SionError('attempt_unreadable', `${path} cannot be read; it holds a payment that was signed and not answered: ${messageOf(error)}`, { cause: error })
  }
}

function parseAttempt(text: string): Attempt {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new TypeError('not an object')
  const { url, header, transaction, submit, submitUntil, goodUntil } = value as Record<string, unknown>
  if (typeof url !== 'string' || typeof header !== 'string' || typeof transaction !== 'string') throw new TypeError('a field is missing')
  if (typeof submitUntil !== 'number' || typeof goodUntil !== 'number') throw new TypeError('a field is missing')
  return { url, header, transaction, submitUntil, goodUntil, ...(typeof submit === 'string' ? { submit } : {}) }
}

/** Names a process for as long as it lives, and no later one with the same id. */
function holderOf(pid: number): string | undefined {
  const stamp = processStamp(pid)
  return stamp === undefined ? undefined : `${pid}-${toHex(sha256(new TextEncoder().encode(stamp))).slice(0, 16)}`
}

function isAlive(holder: string | undefined): boolean {
  const pid = Number(holder?.split('-', 1)[0])
  return Number.isSafeInteger(pid) && pid > 0 && holderOf(pid) === holder
}

function unlessGone(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
