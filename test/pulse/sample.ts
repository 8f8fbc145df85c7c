import { toHex } from '../../src/codec/index.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { SIZES, type DualPublicKeys } from '../../src/crypto/keys.js'
import { DEFAULT_PARAMETERS } from '../../src/ledger/index.js'
import type { Genesis, Header } from '../../src/pulse/index.js'

const idOf = (name: string): string => toHex(taggedHash(`test/${name}`))

/** A header in which no two fields are alike. */
export const sampleHeader: Header = {
  chain: idOf('chain'),
  epoch: 2,
  number: 205,
  round: 207,
  parent: idOf('parent'),
  time: 1_700_000_000_000,
  beacon: idOf('beacon'),
  stateRoot: idOf('state'),
  knowledgeRoot: idOf('knowledge'),
  knowledgeSize: 3,
  receiptsRoot: idOf('receipts'),
  receiptCount: 4,
  dataRoot: idOf('data'),
  laneRoot: idOf('lanes'),
  forcedPending: 5,
  forcedOverdue: 6,
  configHash: idOf('config'),
  validatorSetHash: idOf('validators'),
}

/** Public keys of nobody. */
export function keysOf(byte: number): DualPublicKeys {
  return { mlDsa: new Uint8Array(SIZES.mlDsaPublic).fill(byte), slhDsa: new Uint8Array(SIZES.slhDsaPublic).fill(byte) }
}

export const sampleGenesis: Genesis = {
  name: 'sion-devnet-1',
  salt: '00112233445566778899aabbccddeeff',
  time: 1_700_000_000_000,
  validators: [
    { keys: keysOf(1), stake: 100_000n },
    { keys: keysOf(2), stake: 300_000n },
  ],
  parameters: DEFAULT_PARAMETERS,
  balances: [
    [idOf('alice'), 5_000_000n],
    [idOf('bob'), 7n],
  ],
}
