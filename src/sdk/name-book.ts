import { randomBytes } from 'node:crypto'
import { readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isId, shortId, type Id } from '../codec/index.js'
import type { Names } from '../ledger/index.js'
import { makeFolder } from './make-folder.js'
import { parseWalletName } from './wallet-store.js'

/**
 * Which account a name meant when it was last resolved, in `<home>/names.json`, so that sentences can say `bob` where the
 * ledger says `a27e5e28`. Only a cache for words: no payment is ever addressed from it. Whatever is wrong with the file
 * (absent, broken, half written, not ours to write) makes it shorter, never an error.
 */
export interface NameBook {
  /** The name of an account, else the first eight digits of its id. */
  readonly names: Names
  /** From now on, and for later commands, `account` is called `name`; whatever had that name before loses it. */
  remember(name: string, account: Id): Promise<void>
}

const MOST_NAMES = 1_000

export async function openNameBook(home: string): Promise<NameBook> {
  const path = join(home, 'names.json')
  let byName = await load(path)
  let byAccount = inverse(byName)
  return {
    names: (account) => byAccount.get(account) ?? shortId(account),
    async remember(name, account) {
      if (byName.get(name) === account) return
      // Read again: another command may have written since.
      byName = await load(path)
      byName.delete(name)
      byName.set(name, account)
      byAccount = inverse(byName)
      await save(home, path, byName)
    },
  }
}

function inverse(byName: ReadonlyMap<string, Id>): Map<Id, string> {
  return new Map([...byName].map(([name, account]) => [account, name]))
}

async function load(path: string): Promise<Map<string, Id>> {
  try {
    const json: unknown = JSON.parse(await readFile(path, 'utf8'))
    if (!isNames(json)) return new Map()
    return new Map(json.names.filter(isEntry).slice(-MOST_NAMES))
  } catch {
    return new Map()
  }
}

/** Oldest first, as pairs: a JSON object would put names that are numbers before all others. */
function isNames(json: unknown): json is { version: 1; names: unknown[] } {
  return typeof json === 'object' && json !== null && 'version' in json && json.version === 1 && 'names' in json && Array.isArray(json.names)
}

function isEntry(entry: unknown): entry is [string, Id] {
  if (!Array.isArray(entry) || entry.length !== 2 || !isId(entry[1])) return false
  try {
    parseWalletName(entry[0], 'name')
    return true
  } catch {
    return false
  }
}

async function save(home: string, path: string, byName: ReadonlyMap<string, Id>): Promise<void> {
  const aside = `${path}.${randomBytes(6).toString('hex')}`
  try {
    makeFolder(home)
    await writeFile(aside, `${JSON.stringify({ version: 1, names: [...byName] })}\n`, { mode: 0o600, flag: 'wx' })
    await rename(aside, path)
  } catch {
    await unlink(aside).catch(() => {})
  }
}
