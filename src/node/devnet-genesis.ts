import { toHex, type Id } from '../codec/index.js'
import { keysFromSeed } from '../crypto/keys.js'
import { randomBytes } from '../crypto/runtime.js'
import { accountOf, DEFAULT_PARAMETERS, EMPTY_ACCOUNT, encodeObject } from '../ledger/index.js'
import type { Genesis } from '../pulse/index.js'
import type { ChainSecrets } from './store.js'

/** In whole units: 300000 of 400000 is what three of four sign with. */
const STAKE = 100_000n
/** 1,000,000,000 USD in micro-USD: all the money there is, on the faucet's account. */
const SUPPLY = 1_000_000_000n * 1_000_000n

export const DEFAULT_VALIDATORS = 4
export const MAX_VALIDATORS = 32

/** A new devnet. All its seeds are random: what anybody could derive would not be a validator. */
export function newDevnet(validators: number, time: number): { genesis: Genesis; secrets: ChainSecrets } {
  const validatorSeeds = Array.from({ length: validators }, () => randomBytes(32))
  const faucetSeed = randomBytes(32)
  const genesis: Genesis = {
    name: 'sion-devnet-1',
    salt: toHex(randomBytes(16)),
    time,
    validators: validatorSeeds.map((seed) => ({ keys: keysFromSeed(seed).publicKeys, stake: STAKE })),
    parameters: DEFAULT_PARAMETERS,
    balances: [[accountOf(keysFromSeed(faucetSeed).publicKeys), SUPPLY]],
  }
  return { genesis, secrets: { validatorSeeds, faucetSeed } }
}

/** The state that a genesis describes. */
export function genesisObjects(genesis: Genesis): Map<Id, Uint8Array> {
  return new Map(genesis.balances.map(([account, balance]) => [account, encodeObject({ ...EMPTY_ACCOUNT, balance })]))
}
