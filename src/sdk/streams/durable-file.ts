import { randomBytes } from 'node:crypto'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The file appears whole or not at all, readable by its owner alone, and is there after a power cut. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const aside = join(dirname(path), `.${randomBytes(6).toString('hex')}.new`)
  try {
    const file = await open(aside, 'wx', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(aside, path)
  } catch (error) {
    await unlink(aside).catch(() => {})
    throw error
  }
  await syncFolder(dirname(path))
}

/** What was created, renamed or removed in a folder stays so. */
export async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders; there the entry is as durable as the system makes it.
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
