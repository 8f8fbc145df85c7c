import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InputError, toHex, unpack } from '../../src/codec/index.js'
import type { DualPublicKeys } from '../../src/crypto/keys.js'
import {
  action,
  decodeBody,
  decodeObject,
  decodeReceipt,
  decodeSigned,
  digestOf,
  dualPublicKeys,
  encodeBody,
  encodeObject,
  encodeReceipt,
  encodeSigned,
  MAX_CLAIMS,
  MAX_PURPOSE_BYTES,
  parameters,
  type Action,
  type Body,
  type LedgerObject,
  type Parameters,
  type SignedTransaction,
  type StreamClaim,
} from '../../src/ledger/index.js'
import * as arbitrary from '../support/arbitraries.js'
import { changes, describeBytes, expectCanonical, expectEveryChangeCanonical, expectRoundTrip, type Canonical } from '../support/canonical.js'

const bodies: Canonical<Body> = { encode: encodeBody, decode: decodeBody }
const signedOnes: Canonical<SignedTransaction> = { encode: encodeSigned, decode: decodeSigned }
const objects: Canonical<LedgerObject> = { encode: encodeObject, decode: decodeObject }
const receipts = { encode: encodeReceipt, decode: decodeReceipt }
const actions: Canonical<Action> = { encode: (value) => action.encode(value), decode: (bytes) => unpack(action, bytes, 'action') }

const zero32 = new Uint8Array(32)
const anId = 'ab'.repeat(32)
const aBody = (its: Action): Body => ({ chain: anId, signer: anId, nonce: 'cd'.repeat(16), validUntil: 238, action: its })

describeBytes('a body', bodies, arbitrary.body)
describeBytes('a signed transaction', signedOnes, arbitrary.signed)
describeBytes('an action', actions, arbitrary.action)
describeBytes('an object', objects, arbitrary.object)
describeBytes('a receipt with its events', receipts, arbitrary.receipt)

describe('every bit of', () => {
  const jump = { index: 1, path: [zero32] }
  const claims: StreamClaim[] = [
    { stream: anId, position: 70, element: zero32, jump },
    { stream: anId, position: 1, element: zero32, jump: undefined },
  ]
  const terms = { payee: anId, anchor: zero32, salt: zero32.slice(16), checkpointRoot: zero32, length: 100, stepValue: 1_000n, escrow: 1n, lastPulse: 9 }

  it.each<[Action['kind'], Action]>([
    ['transfer', { kind: 'transfer', to: anId, amount: 1_000_000n, purpose: 'for é😀' }],
    ['setDual', { kind: 'setDual', dual: true }],
    ['openStream', { kind: 'openStream', ...terms }],
    ['topUpStream', { kind: 'topUpStream', stream: anId, amount: 1n, lastPulse: 9 }],
    ['settleStreams', { kind: 'settleStreams', claims }],
    ['closeStream', { kind: 'closeStream', stream: anId }],
  ])('a body that asks %s counts', (_, its) => {
    expectRoundTrip(bodies, aBody(its))
    expectEveryChangeCanonical(bodies, encodeBody(aBody(its)))
  })

  it.each<[LedgerObject['kind'], LedgerObject]>([
    ['account', { kind: 'account', balance: 7n, dual: false, keys: undefined }],
    ['spentNonce', { kind: 'spentNonce', validUntil: 7 }],
    ['stream', { kind: 'stream', payer: anId, ...terms, settled: 3, settledElement: zero32, closed: false }],
  ])('an object that is a %s counts', (_, value) => {
    expectRoundTrip(objects, value)
    expectEveryChangeCanonical(objects, encodeObject(value))
  })

  it('a transaction’s frame counts: what says that keys and a second signature are there', () => {
    const bytes = encodeSigned({ body: aBody({ kind: 'setDual', dual: true }), mlDsa: new Uint8Array(2_420) })
    const bodyLength = encodeBody(aBody({ kind: 'setDual', dual: true })).length
    expectEveryChangeCanonical(signedOnes, bytes, bodyLength + 1)
    for (const flag of [1, 2, 255]) {
      expect(expectCanonical(signedOnes, bytes.with(bodyLength, flag))).toBe('refused')
      expect(expectCanonical(signedOnes, bytes.with(bytes.length - 1, flag))).toBe('refused')
    }
  })

  it('a receipt counts', () => {
    const bytes = encodeReceipt({
      digest: anId,
      index: 0,
      pulse: 205,
      outcome: { kind: 'failed', reason: 'no' },
      fee: 1_100n,
      events: [{ kind: 'StreamClaimRefused', stream: anId, code: 'c', reason: 'é' }, { kind: 'DualSet', account: anId, dual: true }],
    })
    expectEveryChangeCanonical(receipts, bytes)
  })
})

describe('what bytes can hold', () => {
  const claimFor = (number: number): StreamClaim => ({ stream: number.toString(16).padStart(64, '0'), position: 1, element: zero32 })
  const claimsOf = (length: number): Action => ({ kind: 'settleStreams', claims: Array.from({ length }, (_, number) => claimFor(number)) })

  it('is at most 256 claims in a settlement', () => {
    const bytes = encodeBody(aBody(claimsOf(MAX_CLAIMS)))
    expect(decodeBody(bytes).action).toMatchObject({ kind: 'settleStreams' })
    expect(() => encodeBody(aBody(claimsOf(MAX_CLAIMS + 1)))).toThrow('list of 257 is over 256')
    // The same by hand: one more claim behind, and the length before the claims raised.
    const one = encodeBody(aBody(claimsOf(1)))
    const claimLength = one.length - encodeBody(aBody(claimsOf(0))).length
    const more = Uint8Array.of(...bytes, ...one.subarray(-claimLength))
    const lengthAt = one.length - claimLength - 2
    more[lengthAt + 1] = more[lengthAt + 1]! + 1
    expect(() => decodeBody(more)).toThrow('list of 257 is over 256')
  })

  it('is at most 26 hashes in a jump’s path', () => {
    const jumping = (nodes: number): Body =>
      aBody({ kind: 'settleStreams', claims: [{ ...claimFor(1), jump: { index: 1, path: Array.from({ length: nodes }, () => zero32) } }] })
    expectRoundTrip(bodies, jumping(26))
    expect(() => encodeBody(jumping(27))).toThrow('list of 27 is over 26')
    const bytes = encodeBody(jumping(26))
    const more = Uint8Array.of(...bytes, ...zero32)
    const lengthAt = bytes.length - 26 * 32 - 2
    more[lengthAt + 1] = 27
    expect(() => decodeBody(more)).toThrow('list of 27 is over 26')
  })

  it('is a purpose of at most 120 bytes of UTF-8', () => {
    const paying = (purpose: string): Body => aBody({ kind: 'transfer', to: anId, amount: 1n, purpose })
    expectRoundTrip(bodies, paying('é'.repeat(MAX_PURPOSE_BYTES / 2)))
    expect(() => encodeBody(paying('é'.repeat(MAX_PURPOSE_BYTES / 2 + 1)))).toThrow('text of 122 bytes is over 120')
    for (const purpose of ['\ud800', 'a\nb', '\u202e', '\u009b']) expect(() => encodeBody(paying(purpose))).toThrow('control character')
  })

  it('is no action, object or event under an unknown tag', () => {
    const bodyBytes = encodeBody(aBody({ kind: 'closeStream', stream: anId }))
    const tagAt = bodyBytes.length - 33
    expect(bodyBytes[tagAt]).toBe(6)
    for (const tag of [0, 7, 128, 255]) {
      expect(() => decodeBody(bodyBytes.with(tagAt, tag))).toThrow(InputError)
      expect(() => decodeObject(Uint8Array.of(tag, 0, 0, 0, 0, 0, 0, 0, 1))).toThrow(InputError)
    }
  })
})

describe('keys and parameters', () => {
  it('have fixed lengths', () => {
    const pair = { mlDsa: new Uint8Array(1_312), slhDsa: new Uint8Array(32) }
    const coded: Canonical<DualPublicKeys> = { encode: (value) => dualPublicKeys.encode(value), decode: (bytes) => unpack(dualPublicKeys, bytes, 'keys') }
    expectRoundTrip(coded, pair)
    expect(coded.encode(pair)).toHaveLength(1_344)
    for (const length of [0, 1_343, 1_345]) expect(expectCanonical(coded, new Uint8Array(length))).toBe('refused')
    const fees: Canonical<Parameters> = { encode: (value) => parameters.encode(value), decode: (bytes) => unpack(parameters, bytes, 'parameters') }
    expect(toHex(fees.encode({ feeBase: 1_000n, feeTouched: 100n, feeCreated: 100n }))).toBe('00000000000003e800000000000000640000000000000064')
    expectEveryChangeCanonical(fees, new Uint8Array(24))
  })
})

describe('the digest of a body', () => {
  it('is another one for any other body, and does not depend on signatures or keys', () => {
    fc.assert(
      fc.property(arbitrary.signed, changes, (tx, change) => {
        const digest = digestOf(tx.body)
        expect(digestOf(decodeSigned(encodeSigned({ ...tx, keys: undefined, mlDsa: tx.mlDsa.map((byte) => byte ^ 1), slhDsa: undefined })).body)).toBe(digest)
        const changed = change(encodeBody(tx.body))
        if (expectCanonical(bodies, changed) === 'refused') return
        expect(digestOf(decodeBody(changed)) === digest).toBe(Buffer.compare(changed, encodeBody(tx.body)) === 0)
      }),
    )
  })
})
