import { existsSync, mkdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Makes a folder, and those above it, for its owner alone. One level at a time: Node's recursive way never ends where a
 * file system takes no folders, such as /proc.
 * @throws as mkdir does, where it cannot be made.
 */
export function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  const parent = dirname(resolve(folder))
  if (parent !== resolve(folder)) makeFolder(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process that starts at the same moment was first.
    if (!existsSync(folder)) throw error
  }
}
