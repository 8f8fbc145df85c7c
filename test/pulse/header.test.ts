import { describe, expect, it } from 'vitest'
import { fromHex, isId } from '../../src/codec/index.js'
import { encodeHeader, headerHash, nextBeacon, voteMessage, ZERO_ID, type Header } from '../../src/pulse/index.js'
import { sampleHeader } from './sample.js'

const bytesOf = (id: string): Uint8Array => fromHex(id, 'id', 32)

/** Every way to change one field a little. */
const changedFields = Object.entries(sampleHeader).map(([field, value]): [string, Header] => [
  field,
  { ...sampleHeader, [field]: typeof value === 'number' ? value + 1 : value.startsWith('0') ? `1${value.slice(1)}` : `0${value.slice(1)}` },
])

describe('a header’s hash', () => {
  it('is an id that follows from its fields, in whatever order they were written down', () => {
    expect(isId(headerHash(sampleHeader))).toBe(true)
    const { chain, ...others } = sampleHeader
    expect(headerHash({ ...others, chain })).toBe(headerHash(sampleHeader))
  })

  it('covers 18 fields', () => {
    expect(changedFields).toHaveLength(18)
  })

  it.each(changedFields)('is another one when %s is', (_, changed) => {
    expect(encodeHeader(changed)).not.toEqual(encodeHeader(sampleHeader))
    expect(headerHash(changed)).not.toBe(headerHash(sampleHeader))
  })

  it('is another one when any two fields of a kind change places', () => {
    const fields = Object.entries(sampleHeader)
    const hashes = new Set([headerHash(sampleHeader)])
    let swaps = 0
    for (const [at, [first, one]] of fields.entries()) {
      for (const [second, other] of fields.slice(at + 1)) {
        if (typeof one !== typeof other || Math.max(Number(one), Number(other)) > 2 ** 32) continue
        swaps++
        hashes.add(headerHash({ ...sampleHeader, [first]: other, [second]: one }))
      }
    }
    expect(swaps).toBeGreaterThan(15)
    expect(hashes.size).toBe(swaps + 1)
  })
})

describe('what a validator signs', () => {
  const vote = { chain: sampleHeader.chain, epoch: 0, number: 205, headerHash: headerHash(sampleHeader) }

  it('is 32 bytes and not the header’s hash itself', () => {
    expect(voteMessage(vote)).toHaveLength(32)
    expect(voteMessage(vote)).toEqual(voteMessage({ ...vote }))
    expect(voteMessage(vote)).not.toEqual(bytesOf(vote.headerHash))
  })

  it.each([
    ['chain', { chain: ZERO_ID }],
    ['epoch', { epoch: 1 }],
    ['number', { number: 206 }],
    ['header', { headerHash: ZERO_ID }],
  ])('serves for no other %s', (_, other) => {
    expect(voteMessage({ ...vote, ...other })).not.toEqual(voteMessage(vote))
  })

  it('keeps epoch and number apart', () => {
    expect(voteMessage({ ...vote, epoch: 1, number: 2 })).not.toEqual(voteMessage({ ...vote, epoch: 2, number: 1 }))
  })
})

describe('the next beacon', () => {
  it('follows from the one before and from the parent, in this order', () => {
    const [beacon, parent] = [bytesOf(sampleHeader.beacon), bytesOf(sampleHeader.parent)]
    expect(nextBeacon(beacon, parent)).toBe(nextBeacon(beacon.slice(), parent.slice()))
    expect(nextBeacon(parent, beacon)).not.toBe(nextBeacon(beacon, parent))
    expect(nextBeacon(beacon, beacon)).not.toBe(nextBeacon(beacon, parent))
  })
})
