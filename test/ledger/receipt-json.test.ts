import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_AMOUNT } from '../../src/codec/index.js'
import { eventJson, statusJson, type LedgerEvent } from '../../src/ledger/index.js'
import * as arbitrary from '../support/arbitraries.js'

const a = 'aa'.repeat(32)
const b = 'bb'.repeat(32)
const c = 'cc'.repeat(32)

describe('an event in JSON', () => {
  it('of a payment has the shape of the reference', () => {
    const asset = '1436ac5e7c42d6cc93304083c0c6c8c964e939aa391c2e0a7304810b7e368f3c'
    const payee = 'd4a27f08fe31e101a2bce2845d3ae4c00a16405db06b569c56a34732641cb971'
    const json = JSON.stringify(eventJson({ kind: 'Transferred', asset, outputs: [[payee, 1_500_000n]] }))
    expect(json).toBe(`{"Transferred":{"asset":"${asset}","outputs":[["${payee}",1500000]]}}`)
  })

  it.each<[LedgerEvent, object]>([
    [{ kind: 'Transferred', asset: a, outputs: [[b, 1n], [c, 2n]] }, { Transferred: { asset: a, outputs: [[b, 1], [c, 2]] } }],
    [{ kind: 'DualSet', account: a, dual: true }, { DualSet: { account: a, dual: true } }],
    [
      { kind: 'StreamOpened', stream: a, payer: b, payee: c, escrow: 5n, lastPulse: 9 },
      { StreamOpened: { stream: a, payer: b, payee: c, escrow: 5, last_pulse: 9 } },
    ],
    [
      { kind: 'StreamToppedUp', stream: a, amount: 1n, escrow: 5n, lastPulse: 9 },
      { StreamToppedUp: { stream: a, amount: 1, escrow: 5, last_pulse: 9 } },
    ],
    [
      { kind: 'StreamSettled', stream: a, payee: c, position: 7, amount: 5n },
      { StreamSettled: { stream: a, payee: c, position: 7, amount: 5 } },
    ],
    [{ kind: 'StreamClaimRefused', stream: a, code: 'x', reason: 'y' }, { StreamClaimRefused: { stream: a, code: 'x', reason: 'y' } }],
    [{ kind: 'StreamClosed', stream: a, payer: b, refund: 5n }, { StreamClosed: { stream: a, payer: b, refund: 5 } }],
  ])('of $0.kind has its fields and no others', (event, json) => {
    expect(eventJson(event)).toStrictEqual(json)
  })

  it('keeps the largest amount exact', () => {
    const json = JSON.stringify(eventJson({ kind: 'StreamClosed', stream: a, payer: b, refund: MAX_AMOUNT }))
    expect(json).toContain('"refund":9007199254740991}')
    expect(BigInt(JSON.parse(json).StreamClosed.refund)).toBe(MAX_AMOUNT)
  })

  it('is plain JSON under one name, whatever happened', () => {
    fc.assert(
      fc.property(arbitrary.event, (event) => {
        const json = eventJson(event)
        expect(Object.keys(json)).toEqual([event.kind])
        expect(JSON.parse(JSON.stringify(json))).toEqual(json)
      }),
    )
  })
})

describe('an outcome in JSON', () => {
  it('has the shape of the reference', () => {
    expect(statusJson({ kind: 'success' })).toBe('Success')
    expect(statusJson({ kind: 'failed', reason: 'charter caveat violated: payee not allowed' })).toEqual({
      Failed: 'charter caveat violated: payee not allowed',
    })
  })
})
