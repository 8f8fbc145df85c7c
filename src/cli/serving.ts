import { mkdirSync } from 'node:fs'
import { InputError, quote } from '../codec/index.js'
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

export interface StoreOptions {
  data?: string
  redis?: string
}

/**
 * The store that the flags name, else an embedded one in `defaultFolder`. Never memory: a server that forgets sells twice.
 * @throws InputError for both at once, or an address that is not Redis's.
 */
export async function openStore({ data, redis }: StoreOptions, defaultFolder: string): Promise<NonceStore> {
  if (data !== undefined && redis !== undefined) throw new InputError('--redis', 'give either --redis or --data, not both')
  if (data === '') throw new InputError('--data', 'expected a folder')
  const stores = await import('../x402/stores/index.js')
  if (redis === undefined) {
    const folder = data ?? defaultFolder
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    } catch {
      throw new InputError('--data', `${quote(folder, 200)} is no folder that this user may write`)
    }
    return stores.embeddedNonceStore({ folder })
  }
  if (!/^rediss?:\/\/\S+$/.test(redis)) throw new InputError('--redis', 'expected an address such as redis://127.0.0.1:6379')
  return stores.redisNonceStore(redis)
}

/** A server's log, on stderr: stdout is for what a command was asked for. */
export const serverLog: Logger = {
  info: progress,
  warn: (line) => progress(`warning: ${line}`),
  error: (line) => progress(`error: ${line}`),
}
