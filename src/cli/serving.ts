import { join } from 'node:path'
import { InputError, quote, type Id } from '../codec/index.js'
import type { DeskStore } from '../desk/index.js'
import { makeFolder } from '../sdk/make-folder.js'
import type { Logger } from '../x402/logger.js'
import type { NonceStore } from '../x402/nonce-store.js'
import { progress } from './output.js'

/** What the commands that run until Ctrl-C have in common. */

/** `host:port`, an IPv6 host in brackets. @throws InputError `--listen`. */
export function parseListen(text: string): { host: string; port: number } {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s/]+)):([0-9]{1,5})$/.exec(text)
  const port = Number(match?.[3])
  const host = match?.[1] ?? match?.[2]
  if (host === undefined || !(port <= 65_535)) {
    throw new InputError('--listen', `expected host:port, such as 127.0.0.1:8730, not ${quote(text)}`)
  }
  return { host, port }
}

/** Resolves at the first Ctrl-C or SIGTERM. Once: whoever presses Ctrl-C again does not want to wait. */
export function interruption(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
}

/** A whole number from `least` to `most`. @throws InputError naming the flag. */
export function parseWhole(text: string, flag: string, least: number, most: number): number {
  if (/^(0|[1-9][0-9]{0,9})$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
  throw new InputError(flag, `expected a whole number from ${least} to ${most}, not ${quote(text)}`)
}

export interface StoreOptions {
  data?: string
  redis?: string
}

/** Where the flags say that a command keeps what it must not forget. Never memory: a server that forgets sells twice. */
export type StorePlace = { readonly folder: string } | { readonly redis: string }

/** Before anything is asked of anyone. @throws InputError for both at once, no folder, or an address that is not Redis's. */
export function checkStore({ data, redis }: StoreOptions): void {
  if (data !== undefined && redis !== undefined) throw new InputError('--redis', 'give either --redis or --data, not both')
  if (data === '') throw new InputError('--data', 'expected a folder')
  if (redis !== undefined && (!/^rediss?:\/\/\S+$/.test(redis) || !URL.canParse(redis))) {
    throw new InputError('--redis', 'expected an address such as redis://127.0.0.1:6379')
  }
}

/**
 * The place that the flags name, else `defaultFolder`.
 * @throws InputError as {@link checkStore}, and for a folder that cannot be made.
 */
export function storePlace(options: StoreOptions, defaultFolder: string): StorePlace {
  checkStore(options)
  const { data, redis } = options
  if (redis !== undefined) return { redis }
  const folder = data ?? defaultFolder
  try {
    makeFolder(folder)
  } catch {
    throw new InputError('--data', `${quote(folder, 200)} is no folder that this user may write`)
  }
  return { folder }
}

/** Paid quotes, or settled payments, in that place. */
export async function openNonces(place: StorePlace): Promise<NonceStore> {
  const { embeddedNonceStore, redisNonceStore } = await import('../x402/stores/index.js')
  return 'redis' in place ? redisNonceStore(place.redis) : embeddedNonceStore({ folder: join(place.folder, 'quotes') })
}

/** Where in a server's folder its tabs are. */
export const TABS_FOLDER = 'streams'

/** Tabs of streams in that place; in Redis under `name`, so that sellers who share one settle only their own. */
export async function openTabs(place: StorePlace, name: string): Promise<DeskStore> {
  const { embeddedDeskStore, redisDeskStore } = await import('../x402/stores/index.js')
  return 'redis' in place
    ? redisDeskStore({ url: place.redis, prefix: `sion:desk:${name}` })
    : embeddedDeskStore(join(place.folder, TABS_FOLDER))
}

/** One name, and one default folder, for each payee and chain. */
export function sellerName(payee: Id, chain: Id): string {
  return `${payee.slice(0, 16)}-${chain.slice(0, 16)}`
}

/** A server's log, on stderr: stdout is for what a command was asked for. */
export const serverLog: Logger = {
  info: progress,
  warn: (line) => progress(`warning: ${line}`),
  error: (line) => progress(`error: ${line}`),
}
