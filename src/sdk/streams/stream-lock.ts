import { randomBytes } from 'node:crypto'
import { readdir, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shortId, SionError, toHex, type Id } from '../../codec/index.js'
import { sha256 } from '../../crypto/hash.js'
import { processStamp } from '../process-stamp.js'

/** A stream held by this process. */
export interface StreamLock {
  release(): Promise<void>
}

const ATTEMPTS = 4

/**
 * Takes a stream for this process: two payers of one stream would each reveal the same elements for different calls.
 *
 * A holder announces itself in a file of its own (`<stream>.lock.<pid>.<stamp>.<random>`) and then looks for others: of
 * two that come at once none can overlook the other, so both may fail, and try again, but never both succeed. What a
 * dead process left is removed. Processes must see each other's ids: not from two machines or containers.
 *
 * @throws SionError `stream_in_use`, naming the process.
 */
export async function lockStream(folder: string, stream: Id): Promise<StreamLock> {
  const prefix = `${stream}.lock.`
  for (let attempt = 1; ; attempt++) {
    const mine = `${prefix}${process.pid}.${stampOf(process.pid) ?? ''}.${randomBytes(4).toString('hex')}`
    await writeFile(join(folder, mine), '', { flag: 'wx', mode: 0o600 })
    const holder = await otherHolder(folder, prefix, mine)
    if (holder === undefined) return { release: () => remove(folder, mine) }
    await remove(folder, mine)
    if (attempt === ATTEMPTS) {
      const who = holder === process.pid ? `this process (${holder})` : `process ${holder}`
      throw new SionError('stream_in_use', `stream ${shortId(stream)} is in use by ${who}: one payer at a time pays from a stream`)
    }
    await new Promise((resolve) => setTimeout(resolve, 5 + Math.random() * 40))
  }
}

async function otherHolder(folder: string, prefix: string, mine: string): Promise<number | undefined> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix) || name === mine) continue
    const [pidText, stamp] = name.slice(prefix.length).split('.')
    const pid = Number(pidText)
    if (Number.isSafeInteger(pid) && pid > 0 && stampOf(pid) === stamp) return pid
    await remove(folder, name)
  }
  return undefined
}

/** Tells a living process from a later one with the same id. */
function stampOf(pid: number): string | undefined {
  const stamp = processStamp(pid)
  return stamp === undefined ? undefined : toHex(sha256(new TextEncoder().encode(stamp))).slice(0, 16)
}

async function remove(folder: string, name: string): Promise<void> {
  await unlink(join(folder, name)).catch(() => {})
}
