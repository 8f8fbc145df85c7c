import * as fc from 'fast-check'
import { isPrintable, MAX_AMOUNT, toHex } from '../../src/codec/index.js'
import { SIZES } from '../../src/crypto/keys.js'
import {
  MAX_PURPOSE_BYTES,
  type Action,
  type Body,
  type LedgerEvent,
  type LedgerObject,
  type Outcome,
  type Receipt,
  type SignedTransaction,
} from '../../src/ledger/index.js'
import type { Certificate, Genesis, Header } from '../../src/pulse/index.js'

/** Any value of every kind that has canonical bytes, with what is absent spelled as undefined. */

/** Objects with the usual prototype, as decoding makes them. */
function record<T>(fields: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(fields, { noNullPrototype: true })
}

const u32 = fc.oneof(fc.nat(300), fc.constantFrom(2 ** 32 - 1, 2 ** 31, 65_536), fc.integer({ min: 0, max: 2 ** 32 - 1 }))
const u16 = fc.integer({ min: 0, max: 65_535 })
const count = fc.oneof(fc.nat(2_000), fc.constantFrom(Number.MAX_SAFE_INTEGER, 2 ** 32), fc.maxSafeNat())
export const amount = fc.oneof(fc.bigInt(0n, 5_000_000n), fc.constantFrom(0n, MAX_AMOUNT), fc.bigInt(0n, MAX_AMOUNT))

/** Bytes that differ from draw to draw; drawing each of 17,088 would take the test's whole time. */
function bytes(length: number): fc.Arbitrary<Uint8Array> {
  return fc.nat().map((seed) => {
    let state = seed ^ 0x9e3779b9
    return Uint8Array.from({ length }, () => {
      state ^= state << 13
      state ^= state >>> 17
      state ^= state << 5
      return state & 255
    })
  })
}

const bytes32 = bytes(32)
export const id = bytes32.map(toHex)
const maybe = <T>(inner: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(inner, { nil: undefined })

function text(most: number): fc.Arbitrary<string> {
  const unit = fc.oneof(fc.constantFrom(...'abc 09:-é✓😀'), fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }))
  return fc.string({ unit, maxLength: 20 }).filter((value) => isPrintable(value) && new TextEncoder().encode(value).length <= most)
}

const keys = record({ mlDsa: bytes(SIZES.mlDsaPublic), slhDsa: bytes(SIZES.slhDsaPublic) })

const jump = record({ index: u32, path: fc.array(bytes32, { maxLength: 26 }) })
const claim = record({ stream: id, position: u32, element: bytes32, jump: maybe(jump) })

export const action: fc.Arbitrary<Action> = fc.oneof(
  record({ kind: fc.constant('transfer' as const), to: id, amount, purpose: text(MAX_PURPOSE_BYTES) }),
  record({ kind: fc.constant('setDual' as const), dual: fc.boolean() }),
  record({
    kind: fc.constant('openStream' as const),
    payee: id,
    anchor: bytes32,
    salt: bytes(16),
    checkpointRoot: bytes32,
    length: u32,
    stepValue: amount,
    escrow: amount,
    lastPulse: count,
  }),
  record({ kind: fc.constant('topUpStream' as const), stream: id, amount, lastPulse: count }),
  record({ kind: fc.constant('settleStreams' as const), claims: fc.array(claim, { maxLength: 4 }) }),
  record({ kind: fc.constant('closeStream' as const), stream: id }),
)

export const body: fc.Arbitrary<Body> = record({ chain: id, signer: id, nonce: bytes(16).map(toHex), validUntil: count, action })

export const signed: fc.Arbitrary<SignedTransaction> = record({
  body,
  keys: maybe(keys),
  mlDsa: bytes(SIZES.mlDsaSignature),
  slhDsa: fc.option(bytes(SIZES.slhDsaSignature), { nil: undefined, freq: 3 }),
})

export const object: fc.Arbitrary<LedgerObject> = fc.oneof(
  record({ kind: fc.constant('account' as const), balance: amount, dual: fc.boolean(), keys: maybe(keys) }),
  record({ kind: fc.constant('spentNonce' as const), validUntil: count }),
  record({
    kind: fc.constant('stream' as const),
    payer: id,
    payee: id,
    anchor: bytes32,
    salt: bytes(16),
    checkpointRoot: bytes32,
    length: u32,
    stepValue: amount,
    escrow: amount,
    settled: u32,
    settledElement: bytes32,
    lastPulse: count,
    closed: fc.boolean(),
  }),
)

const outputs = fc.array(fc.tuple(id, amount), { maxLength: 4 })

export const event: fc.Arbitrary<LedgerEvent> = fc.oneof(
  record({ kind: fc.constant('Transferred' as const), asset: id, outputs }),
  record({ kind: fc.constant('DualSet' as const), account: id, dual: fc.boolean() }),
  record({ kind: fc.constant('StreamOpened' as const), stream: id, payer: id, payee: id, escrow: amount, lastPulse: count }),
  record({ kind: fc.constant('StreamToppedUp' as const), stream: id, amount, escrow: amount, lastPulse: count }),
  record({ kind: fc.constant('StreamSettled' as const), stream: id, payee: id, position: u32, amount }),
  record({ kind: fc.constant('StreamClaimRefused' as const), stream: id, code: text(64), reason: text(255) }),
  record({ kind: fc.constant('StreamClosed' as const), stream: id, payer: id, refund: amount }),
)

const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constant({ kind: 'success' as const }),
  record({ kind: fc.constant('failed' as const), reason: text(512) }),
)

export const receipt: fc.Arbitrary<Receipt> = record({
  digest: id,
  index: u32,
  pulse: count,
  outcome,
  fee: amount,
  events: fc.array(event, { maxLength: 4 }),
})

export const header: fc.Arbitrary<Header> = record({
  chain: id,
  epoch: count,
  number: count,
  round: count,
  parent: id,
  time: count,
  beacon: id,
  stateRoot: id,
  knowledgeRoot: id,
  knowledgeSize: count,
  receiptsRoot: id,
  receiptCount: u32,
  dataRoot: id,
  laneRoot: id,
  forcedPending: u32,
  forcedOverdue: u32,
  configHash: id,
  validatorSetHash: id,
})

export const genesis: fc.Arbitrary<Genesis> = record({
  name: text(64),
  salt: bytes(16).map(toHex),
  time: count,
  validators: fc.array(record({ keys, stake: amount }), { maxLength: 3 }),
  parameters: record({ feeBase: amount, feeTouched: amount, feeCreated: amount }),
  balances: fc.uniqueArray(fc.tuple(id, fc.bigInt(0n, MAX_AMOUNT / 4n)), { maxLength: 4, selector: ([account]) => account }),
})

export const certificate: fc.Arbitrary<Certificate> = record({
  epoch: count,
  number: count,
  headerHash: id,
  votes: fc.array(
    record({ validator: u16, mlDsa: bytes(SIZES.mlDsaSignature), slhDsa: bytes(SIZES.slhDsaSignature) }),
    { maxLength: 2 },
  ),
})
