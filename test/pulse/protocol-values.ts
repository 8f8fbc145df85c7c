import { toHex } from '../../src/codec/index.js'
import { keysFromSeed } from '../../src/crypto/keys.js'
import {
  accountOf,
  configHash,
  DEFAULT_PARAMETERS,
  devnetSeed,
  digestOf,
  encodeBody,
  encodeObject,
  encodeReceipt,
  encodeSigned,
  objectHash,
  parameters,
  spentNonceId,
  streamId,
  TREASURY,
  USD,
  type Action,
  type Body,
  type LedgerEvent,
  type LedgerObject,
  type Outcome,
} from '../../src/ledger/index.js'
import {
  chainOf,
  encodeCertificate,
  encodeGenesis,
  encodeHeader,
  genesisHash,
  headerHash,
  networkOf,
  nextBeacon,
  validatorId,
  validatorSetHash,
  voteMessage,
  type Genesis,
  type Header,
} from '../../src/pulse/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'

/**
 * One value of everything whose bytes or hash are the protocol, made of nothing but numbers written here, and what the code
 * makes of them. `test/vectors/protocol.json` says what that must be.
 */

const run = (first: number, length = 32): Uint8Array => Uint8Array.from({ length }, (_, at) => (first + at) & 255)
const idOf = (first: number): string => toHex(run(first))

const { publicKeys } = keysFromSeed(run(0))
const alice = accountOf(publicKeys)
const dana = accountOf(keysFromSeed(devnetSeed('dana')).publicKeys)
const nonce = toHex(run(0x50, 16))

const bodyOf = (action: Action): Body => ({ chain: idOf(0x10), signer: alice, nonce, validUntil: 238, action })
const jump = { index: 2, path: [run(0x70), run(0x80)] }

const actions: Action[] = [
  { kind: 'transfer', to: dana, amount: 1_500_000n, purpose: 'x402:é😀' },
  { kind: 'setDual', dual: true },
  {
    kind: 'openStream',
    payee: dana,
    anchor: run(0x20),
    salt: run(0x30, 16),
    checkpointRoot: run(0x40),
    length: 100_000,
    stepValue: 1_000n,
    escrow: 2_500_000n,
    lastPulse: 4_000,
  },
  { kind: 'topUpStream', stream: idOf(0x60), amount: 250_000n, lastPulse: 5_000 },
  {
    kind: 'settleStreams',
    claims: [
      { stream: idOf(0x60), position: 130, element: run(0x90), jump },
      { stream: idOf(0x61), position: 7, element: run(0x91) },
    ],
  },
  { kind: 'closeStream', stream: idOf(0x60) },
]

const objects: [string, LedgerObject][] = [
  ['account', { kind: 'account', balance: 31_242_200n, dual: false }],
  ['spentNonce', { kind: 'spentNonce', validUntil: 238 }],
  [
    'stream',
    {
      kind: 'stream',
      payer: alice,
      payee: dana,
      anchor: run(0x20),
      salt: run(0x30, 16),
      checkpointRoot: run(0x40),
      length: 100_000,
      stepValue: 1_000n,
      escrow: 2_500_000n,
      settled: 130,
      settledElement: run(0x90),
      lastPulse: 4_000,
      closed: true,
    },
  ],
]

const events: LedgerEvent[] = [
  { kind: 'Transferred', asset: USD, outputs: [[dana, 1_500_000n]] },
  { kind: 'DualSet', account: alice, dual: true },
  { kind: 'StreamOpened', stream: idOf(0x60), payer: alice, payee: dana, escrow: 2_500_000n, lastPulse: 4_000 },
  { kind: 'StreamToppedUp', stream: idOf(0x60), amount: 250_000n, escrow: 2_750_000n, lastPulse: 5_000 },
  { kind: 'StreamSettled', stream: idOf(0x60), payee: dana, position: 130, amount: 130_000n },
  { kind: 'StreamClaimRefused', stream: idOf(0x61), code: 'already_settled', reason: 'position 7 is settled: the stream is at 9' },
  { kind: 'StreamClosed', stream: idOf(0x60), payer: alice, refund: 2_370_000n },
]

const header: Header = {
  chain: idOf(0x10),
  epoch: 0,
  number: 205,
  round: 207,
  parent: idOf(0x11),
  time: 1_700_000_000_000,
  beacon: idOf(0x12),
  stateRoot: idOf(0x13),
  knowledgeRoot: idOf(0x14),
  knowledgeSize: 3,
  receiptsRoot: idOf(0x15),
  receiptCount: 4,
  dataRoot: idOf(0x16),
  laneRoot: idOf(0x17),
  forcedPending: 5,
  forcedOverdue: 6,
  configHash: idOf(0x18),
  validatorSetHash: idOf(0x19),
}

const validators = [{ keys: publicKeys, stake: 100_000n }]
const genesis: Genesis = {
  name: 'sion-devnet-1',
  salt: nonce,
  time: 1_700_000_000_000,
  validators,
  parameters: DEFAULT_PARAMETERS,
  balances: [[alice, 5_000_000n]],
}

const receiptOf = (outcome: Outcome, of: LedgerEvent[]): Uint8Array =>
  encodeReceipt({ digest: idOf(0x21), index: 1, pulse: 205, outcome, fee: 1_100n, events: of })

/** Bytes in hex by name. What is mostly keys or signatures is left to {@link hashesOfTheProtocol}. */
export function bytesOfTheProtocol(): Record<string, string> {
  const all: [string, Uint8Array][] = [
    ...actions.map((action): [string, Uint8Array] => [`body: ${action.kind}`, encodeBody(bodyOf(action))]),
    ...objects.map(([name, object]): [string, Uint8Array] => [`object: ${name}`, encodeObject(object)]),
    ...events.map((event): [string, Uint8Array] => [`receipt: ${event.kind}`, receiptOf({ kind: 'success' }, [event])]),
    ['receipt: failed', receiptOf({ kind: 'failed', reason: 'charter caveat violated: payee not allowed' }, [])],
    ['header', encodeHeader(header)],
    ['certificate without votes', encodeCertificate({ epoch: 0, number: 205, headerHash: headerHash(header), votes: [] })],
    ['genesis without validators', encodeGenesis({ ...genesis, validators: [] })],
    ['parameters', parameters.encode(DEFAULT_PARAMETERS)],
  ]
  return Object.fromEntries(all.map(([name, bytes]) => [name, toHex(bytes)]))
}

/** Ids and hashes by name. */
export async function hashesOfTheProtocol(): Promise<Record<string, string>> {
  const payer = await PayerChain.build({ seed: run(0), salt: run(0x30, 16), length: 200 })
  const signed = { body: bodyOf({ kind: 'setDual', dual: true }), keys: publicKeys, mlDsa: run(1, 2_420), slhDsa: run(2, 17_088) }
  const accountWithKeys = encodeObject({ kind: 'account', balance: 1n, dual: true, keys: publicKeys })
  const vote = { validator: 0, mlDsa: run(1, 2_420), slhDsa: run(2, 17_088) }
  const certificate = encodeCertificate({ epoch: 0, number: 205, headerHash: headerHash(header), votes: [vote] })
  return {
    'account of the seed 00 01 … 1f': alice,
    'validator of the same keys': validatorId(publicKeys),
    'seed of the devnet wallet dana': toHex(devnetSeed('dana')),
    'account of the devnet wallet dana': dana,
    treasury: TREASURY,
    'asset USD': USD,
    ...Object.fromEntries(actions.map((action) => [`digest: ${action.kind}`, digestOf(bodyOf(action))])),
    'spent nonce': spentNonceId(alice, nonce),
    stream: streamId(digestOf(bodyOf(actions[2]!))),
    'object hash: account with keys': toHex(objectHash(accountWithKeys)),
    'object hash of a signed transaction’s bytes, for their sake': toHex(objectHash(encodeSigned(signed))),
    'object hash of a certificate’s bytes, for their sake': toHex(objectHash(certificate)),
    'configuration hash': configHash(DEFAULT_PARAMETERS),
    'validator set hash': validatorSetHash(validators),
    'genesis hash': genesisHash(genesis),
    chain: chainOf(genesis),
    network: networkOf(chainOf(genesis)),
    'header hash': headerHash(header),
    beacon: nextBeacon(run(0x12), run(0x11)),
    'vote message': toHex(voteMessage({ chain: idOf(0x10), epoch: 0, number: 205, headerHash: headerHash(header) })),
    'anchor of a chain of 200': toHex(payer.anchor),
    'checkpoint root of a chain of 200': toHex(payer.checkpointRoot),
    'element 130 of a chain of 200': toHex(payer.reveal(130)),
  }
}
