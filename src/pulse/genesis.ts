import * as P from 'micro-packed'
import { amount, count, fromHex, hexBytes, id, list, MAX_AMOUNT, text, toHex, unpack, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { parameters, type Parameters } from '../ledger/index.js'
import { validators, type Validator } from './validator-set.js'

/** What a chain begins with. Its hash is the chain's identity: who pins that, pins all of this. */
export interface Genesis {
  /** For people, such as `sion-devnet-1`. */
  readonly name: string
  /** 16 random bytes in hex: two devnets of one name are two chains, and a payment on one is nothing on the other. */
  readonly salt: string
  /** Milliseconds since the Unix epoch. */
  readonly time: number
  readonly validators: Validator[]
  readonly parameters: Parameters
  /** First balances, in micro-USD: each account once, at most 2^53 − 1 together, so that no balance can ever be more. */
  readonly balances: [account: Id, balance: bigint][]
}

const balances: P.CoderType<Genesis['balances']> = P.validate(list(P.tuple([id, amount] as const), 4_096), (entries) => {
  if (new Set(entries.map(([account]) => account)).size < entries.length) throw new RangeError('an account with two balances')
  const total = entries.reduce((sum, [, balance]) => sum + balance, 0n)
  if (total > MAX_AMOUNT) throw new RangeError(`balances of ${total} together, over ${MAX_AMOUNT}`)
  return entries
})

const genesis: P.CoderType<Genesis> = P.struct({
  name: text(64),
  salt: hexBytes(16),
  time: count,
  validators,
  parameters,
  balances,
})

export function encodeGenesis(value: Genesis): Uint8Array {
  return genesis.encode(value)
}

/** @throws InputError unless `bytes` are the canonical encoding of a genesis. */
export function decodeGenesis(bytes: Uint8Array): Genesis {
  return unpack(genesis, bytes, 'genesis')
}

export function genesisHash(value: Genesis): Id {
  return toHex(taggedHash('sion/genesis/v1', encodeGenesis(value)))
}

/** The chain's identity: `H("sion/chain/v1", genesis hash)`. */
export function chainOf(value: Genesis): Id {
  return toHex(taggedHash('sion/chain/v1', fromHex(genesisHash(value), 'genesis', 32)))
}

/** The x402 network (CAIP-2): `sion:` and the first 16 bytes of the chain's identity. */
export function networkOf(chain: Id): `sion:${string}` {
  return `sion:${chain.slice(0, 32)}`
}
