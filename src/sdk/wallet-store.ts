import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { link, open, readdir, rename, unlink, type FileHandle } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, fromHex, InputError, isId, messageOf, quote, SionError, type Id } from '../codec/index.js'
import type { Signatures } from '../crypto/signatures.js'
import { makeFolder } from './make-folder.js'
import { devnetWallet, isDevnet, walletFromSeed, type Wallet } from './wallet.js'

/**
 * Wallets on disk: `<home>/wallets/<name>` holds a 32-byte seed as 64 hex digits and a newline. The file is authoritative
 * for the name: where there is one, good or bad, no devnet wallet is used in its place.
 */
export interface WalletStore {
  readonly folder: string
  pathOf(name: string): string
  /** Makes a wallet from fresh randomness. The file appears whole or not at all, and never replaces another. */
  create(name: string): Promise<Wallet>
  /** The wallet of a file, or undefined where there is no such file. */
  load(name: string): Promise<Wallet | undefined>
  /** Names with a file, sorted. What cannot be a wallet's name is left out. */
  list(): Promise<string[]>
}

/** `$SION_HOME`, else `~/.sion`. */
export function sionHome(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const home = env['SION_HOME']
  return home === undefined || home === '' ? join(homedir(), '.sion') : resolve(home)
}

const nameForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/

/** @throws InputError naming `field` for what is no wallet name, or reads like an account id. */
export function parseWalletName(value: unknown, field: string): string {
  if (typeof value !== 'string') throw new InputError(field, `expected a wallet name, not ${describe(value)}`)
  if (!nameForm.test(value)) {
    throw new InputError(field, `${quote(value)} is no wallet name: 1 to 64 letters, digits, dots, dashes or underscores, the first a letter or digit`)
  }
  // A mistyped id must not become the name of a devnet wallet, which anyone can derive and spend.
  if (/^[0-9a-fA-F]{32,}$/.test(value)) {
    throw new InputError(field, `${quote(value, 80)} is no wallet name: it reads like an account id, which is 64 lower-case hex digits`)
  }
  return value
}

/** @throws InputError naming `field` for what is neither an account id nor a wallet name. */
export function parseNameOrId(value: unknown, field: string): string {
  return isId(value) ? value : parseWalletName(value, field)
}

/** @throws from its methods: InputError for a bad name; SionError `wallet_exists`, `wallet_exposed`, `wallet_malformed`, `wallet_unreadable`, `wallet_unwritable`. */
export function openWalletStore(home: string, options: { signatures?: Signatures } = {}): WalletStore {
  const folder = join(home, 'wallets')
  const pathOf = (name: string) => join(folder, parseWalletName(name, 'wallet'))
  return {
    folder,
    pathOf,
    async create(name) {
      const path = pathOf(name)
      const seed = randomBytes(32)
      await createSeedFile(folder, path, name, `${seed.toString('hex')}\n`)
      return walletFromSeed(seed, { ...options, name })
    },
    async load(name) {
      const seed = await readSeedFile(pathOf(name), name)
      return seed === undefined ? undefined : walletFromSeed(seed, { ...options, name })
    },
    async list() {
      const entries = await readdir(folder).catch((error: unknown) => {
        if (codeOf(error) === 'ENOENT') return []
        throw unreadable(`the wallets in ${folder}`, error)
      })
      return entries.filter(isWalletName).sort()
    },
  }
}

/**
 * The wallet that a name means: its file, or else, on a devnet only, the wallet anyone can derive from the name.
 * `chainName` is the genesis's name; what it says binds nobody to more than that chain, since a signature names its chain.
 * @throws InputError `unknown_wallet`, naming `field`, and what {@link WalletStore.load} throws.
 */
export async function resolveWallet(
  store: WalletStore,
  name: string,
  chainName: string,
  options: { field?: string; signatures?: Signatures } = {},
): Promise<Wallet> {
  const { field = 'wallet', ...walletOptions } = options
  const parsed = parseWalletName(name, field)
  const stored = await store.load(parsed)
  if (stored !== undefined) return stored
  if (isDevnet(chainName)) return devnetWallet(parsed, walletOptions)
  throw new InputError(field, `there is no wallet ${quote(parsed)} in ${store.folder}, and ${quote(chainName)} is no devnet`, {
    code: 'unknown_wallet',
  })
}

/** An account as a person names it: 64 hex digits are an id, anything else is a wallet's name. */
export async function resolveAccount(
  store: WalletStore,
  nameOrId: string,
  chainName: string,
  options: { field?: string } = {},
): Promise<{ account: Id; name?: string }> {
  if (isId(nameOrId)) return { account: nameOrId }
  const { account } = await resolveWallet(store, nameOrId, chainName, options)
  return { account, name: nameOrId }
}

function isWalletName(entry: string): boolean {
  try {
    parseWalletName(entry, 'wallet')
    return true
  } catch {
    return false
  }
}

async function createSeedFile(folder: string, path: string, name: string, contents: string): Promise<void> {
  // Written aside under a name no wallet can have, then linked: a crash leaves no half wallet, and link, unlike rename,
  // fails where a wallet is already there.
  const aside = join(folder, `.${name}.${randomBytes(6).toString('hex')}.new`)
  try {
    makeFolder(folder)
  } catch (cause) {
    throw unwritable(name, cause)
  }
  try {
    await writeDurably(aside, contents)
    try {
      await link(aside, path)
    } catch (error) {
      // Some file systems know no hard links.
      if (!['EPERM', 'ENOTSUP', 'ENOSYS', 'EOPNOTSUPP'].includes(codeOf(error))) throw error
      await (await open(path, 'wx', 0o600)).close()
      await rename(aside, path)
    } finally {
      await unlink(aside).catch(() => {})
    }
    await syncFolder(folder)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') {
      throw new SionError('wallet_exists', `wallet ${quote(name)} is already there: ${path}`, { cause: error })
    }
    throw unwritable(name, error)
  }
}

async function writeDurably(path: string, contents: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(contents)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Windows opens no folders; there the entry is as durable as the system makes it.
  const handle = await open(folder, 'r').catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}

async function readSeedFile(path: string, name: string): Promise<Uint8Array | undefined> {
  let file: FileHandle
  try {
    // Without O_NONBLOCK a FIFO put there would hang us.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw unreadable(`wallet ${quote(name)}`, error)
  }
  try {
    const stat = await file.stat()
    if (!stat.isFile()) throw new SionError('wallet_malformed', `wallet ${quote(name)}: ${path} is not a file`)
    if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
      const mode = (stat.mode & 0o777).toString(8).padStart(3, '0')
      throw new SionError(
        'wallet_exposed',
        `wallet ${quote(name)}: others may read or change ${path} (mode ${mode}); make it yours alone: chmod 600 ${path}`,
      )
    }
    // Never more than this of the contents, and none of it in an error: it may be a seed with a typing mistake.
    if (stat.size > 65) throw malformed(name, path)
    const contents = await file.readFile('latin1')
    const seed = contents.endsWith('\n') ? contents.slice(0, -1) : contents
    if (!isId(seed)) throw malformed(name, path)
    return fromHex(seed, 'seed', 32)
  } catch (error) {
    if (error instanceof SionError) throw error
    throw unreadable(`wallet ${quote(name)}`, error)
  } finally {
    await file.close()
  }
}

function malformed(name: string, path: string): SionError {
  return new SionError('wallet_malformed', `wallet ${quote(name)}: ${path} does not hold a seed of 64 lower-case hex digits and a newline`)
}

function unwritable(name: string, cause: unknown): SionError {
  return new SionError('wallet_unwritable', `wallet ${quote(name)} cannot be written: ${messageOf(cause)}`, { cause })
}

function unreadable(what: string, cause: unknown): SionError {
  return new SionError('wallet_unreadable', `${what} cannot be read: ${messageOf(cause)}`, { cause })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
