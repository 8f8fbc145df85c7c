import { Option, type Command } from 'commander'
import { InputError, parseId, parseUsd, quote, type Id, type MicroUsd } from '../codec/index.js'

export const DEFAULT_NODE = 'http://127.0.0.1:8730'

/** What every command that talks to a ledger takes. As commander leaves it: read it with {@link readNodeOptions}. */
export interface RawNodeOptions {
  node: string
  chain?: string
  json?: boolean
}

export interface NodeOptions {
  /** Without a trailing slash. */
  readonly node: string
  /** The chain identity that answers must verify against; without it the node vouches for itself. */
  readonly chain?: Id
  readonly json: boolean
}

/** Adds `--node`, `--chain` and `--json`. */
export function withNodeOptions(command: Command): Command {
  return command
    .addOption(nodeOption())
    .addOption(
      new Option('--chain <id>', 'The chain identity that answers must verify against. Without it the node vouches for itself').env('SION_CHAIN'),
    )
    .addOption(jsonOption())
}

export function nodeOption(): Option {
  return new Option('--node <url>', "The node's API").env('SION_NODE').default(DEFAULT_NODE, DEFAULT_NODE)
}

export function jsonOption(): Option {
  return new Option('--json', 'Print the result as JSON; lines for people go to stderr')
}

/** @throws InputError naming the flag, or the variable where the value came from the environment. */
export function readNodeOptions(command: Command): NodeOptions {
  const { node, chain, json } = command.opts<RawNodeOptions>()
  const nameOf = (key: 'node' | 'chain') => (command.getOptionValueSource(key) === 'env' ? `SION_${key.toUpperCase()}` : `--${key}`)
  return {
    node: parseNodeUrl(node, nameOf('node')),
    ...(chain === undefined ? {} : { chain: parseId(chain, nameOf('chain')) }),
    json: json === true,
  }
}

/** An http or https origin, perhaps with a path before `/v1`. @throws InputError naming `field`. */
export function parseNodeUrl(text: string, field: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new InputError(field, `expected an http:// or https:// URL, not ${quote(text, 80)}`)
  }
  // Not shown: there may be a password in it.
  if (url.username !== '' || url.password !== '') throw new InputError(field, 'an address with a user or a password is not a node’s')
  if (url.search !== '' || url.hash !== '') throw new InputError(field, `${quote(text, 80)} has a query or fragment`)
  return url.href.replace(/\/+$/, '')
}

/** USD above zero. @throws InputError naming `field`. */
export function parsePositiveUsd(text: string, field: string): MicroUsd {
  const amount = parseUsd(text, field)
  if (amount === 0n) throw new InputError(field, 'expected more than 0 USD')
  return amount
}

/** Whole seconds, 0 to `most`. @throws InputError naming `field`. */
export function parseSeconds(text: string, field: string, most: number): number {
  if (!/^(0|[1-9][0-9]{0,8})$/.test(text) || Number(text) > most) {
    throw new InputError(field, `expected whole seconds from 0 to ${most}, not ${quote(text)}`)
  }
  return Number(text)
}
