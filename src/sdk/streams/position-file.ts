import { writeSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MAX_POSITION } from '../../crypto/chain-step.js'
import { messageOf, SionError } from '../../codec/index.js'
import { errorCode, syncFolder } from './durable-file.js'
import { SLACK, type Position, type PositionLog } from './stream-payer.js'

/**
 * A payer's position in a file of one line: format, steps used, highest step revealed; each in ten digits, so that one
 * write replaces the whole of it. The payer is authoritative for what it revealed, and this is its memory: what is
 * written survives the process at once (`kill -9`), and the machine to within {@link SLACK} steps.
 */
const form = /^1 ([0-9]{10}) ([0-9]{10})\n$/

/** Where the file is lost, nothing is known to be used: the seller or the ledger know better, and say so. */
const UNKNOWN: Position = { used: 0, revealed: 0 }

/** @throws SionError `position_unreadable`, `position_newer`. */
export async function readPosition(path: string): Promise<Position> {
  let text: string
  try {
    text = await readFile(path, 'latin1')
  } catch (cause) {
    if (errorCode(cause) === 'ENOENT') return UNKNOWN
    throw new SionError('position_unreadable', `${path} cannot be read: ${messageOf(cause)}`, { cause })
  }
  const [, used, revealed] = form.exec(text) ?? []
  if (used === undefined || revealed === undefined) {
    if (/^[2-9][0-9]* /.test(text)) {
      throw new SionError('position_newer', `${path} was written by a newer version of sion: use that one`)
    }
    throw new SionError('position_unreadable', `${path} holds no position; move it away and the ledger and the seller will tell: sion stream recover`)
  }
  const position = { used: Number(used), revealed: Number(revealed) }
  if (position.used > position.revealed || position.revealed > MAX_POSITION) {
    throw new SionError('position_unreadable', `${path} holds positions that cannot be: ${used} used of ${revealed} revealed`)
  }
  return position
}

/** Opens the file for one payer. `position` is what {@link readPosition} said. */
export async function openPositionFile(path: string, position: Position): Promise<PositionLog> {
  const file = await open(path, 'a+', 0o600).then(async (created) => {
    await created.close()
    return open(path, 'r+')
  })
  let synced = -1
  let syncing: Promise<void> | undefined
  let written = position

  async function sync(): Promise<void> {
    const { revealed } = written
    await file.datasync()
    synced = Math.max(synced, revealed)
  }

  const log: PositionLog = {
    async write(next) {
      written = next
      writeSync(file.fd, encode(next), 0)
      while (synced < 0 || next.revealed > synced + SLACK) {
        syncing ??= sync().finally(() => {
          syncing = undefined
        })
        await syncing
      }
    },
    async close() {
      try {
        await file.sync()
      } finally {
        await file.close()
      }
    },
  }
  await log.write(position)
  await syncFolder(dirname(path))
  return log
}

function encode({ used, revealed }: Position): string {
  return `1 ${String(used).padStart(10, '0')} ${String(revealed).padStart(10, '0')}\n`
}
