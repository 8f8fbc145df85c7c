import { mkdir, open, readFile, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, SionError } from '../codec/index.js'
import type { Attempt, AttemptLog } from './attempts.js'

/**
 * Attempts as files in a folder, one for each call whose payment has not been answered: on disk before the payment is
 * sent, gone when it is answered. A file is a buyer's ticket, so only its owner may read it.
 */
export function fileAttempts(folder: string): AttemptLog {
  const pathOf = (call: string): string => join(folder, `${call}.json`)
  return {
    async load(call) {
      try {
        return parseAttempt(await readFile(pathOf(call), 'utf8'))
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return undefined
        throw new SionError('attempt_unreadable', `${pathOf(call)} cannot be read; it holds a payment that was signed and not answered: ${messageOf(error)}`, { cause: error })
      }
    },
    async save(call, attempt) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const path = pathOf(call)
      const file = await open(`${path}.new`, 'w', 0o600)
      try {
        await file.writeFile(JSON.stringify(attempt))
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(`${path}.new`, path)
    },
    async clear(call) {
      await unlink(pathOf(call)).catch((error: unknown) => {
        if (codeOf(error) !== 'ENOENT') throw error
      })
    },
  }
}

function parseAttempt(text: string): Attempt {
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new TypeError('not an object')
  const { header, transaction, submit, goodUntil } = value as Record<string, unknown>
  if (typeof header !== 'string' || typeof transaction !== 'string' || typeof goodUntil !== 'number') {
    throw new TypeError('a field is missing')
  }
  return { header, transaction, goodUntil, ...(typeof submit === 'string' ? { submit } : {}) }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
