import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { base64ToText, toBase64 } from '../../../src/codec/index.js'
import { decodePayment, encodePayment } from '../../../src/x402/headers.js'
import { parseStreamPayload, streamPayload } from '../../../src/x402/stream/payment.js'
import { PlainHeaders } from '../../../src/x402/stream/plain-header.js'
import { streamRequirements } from '../../../src/x402/stream/terms.js'

const accepted = streamRequirements({ chain: 'ab'.repeat(32), payee: 'cd'.repeat(32), amount: 1_000n, margin: 10, window: 16 })

const hex32 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'))
const payments = fc.record({
  stream: hex32,
  position: fc.oneof(fc.integer({ min: 1, max: 2 ** 32 }), fc.constantFrom(0, -1, 1.5, 2 ** 53, 2 ** 53 - 1)),
  value: fc.uint8Array({ minLength: 31, maxLength: 33 }),
  window: fc.constantFrom(undefined, true, false),
})

function learned(): PlainHeaders {
  const headers = new PlainHeaders()
  headers.learn(headerOf({ stream: '00'.repeat(32), position: 1, value: new Uint8Array(32) }))
  return headers
}

function headerOf({ window, ...payment }: { stream: string; position: number; value: Uint8Array; window?: boolean | undefined }): string {
  return encodePayment({ x402Version: 2, accepted, payload: streamPayload({ ...payment, ...(window === undefined ? {} : { window }) }) })
}

/** What the parser makes of a header; undefined where it refuses. */
function parsed(header: string): { accepted: unknown; payment: unknown } | undefined {
  try {
    const payment = decodePayment(header)
    return { accepted: payment.accepted, payment: parseStreamPayload(payment.payload) }
  } catch {
    return undefined
  }
}

describe('a payment header read without a parser', () => {
  it('is read at all, once its beginning is known', () => {
    const payment = { stream: '0f'.repeat(32), position: 77, value: new Uint8Array(32).fill(9) }
    expect(learned().read(headerOf(payment))).toEqual(payment)
    expect(learned().read(headerOf({ ...payment, window: true }))).toEqual({ ...payment, window: true })
    expect(new PlainHeaders().read(headerOf(payment))).toBeUndefined()
  })

  it('never says anything else than the parser', () => {
    const headers = learned()
    fc.assert(
      fc.property(payments, (payment) => {
        const header = headerOf(payment)
        const plain = headers.read(header)
        if (plain !== undefined) expect(parsed(header)).toEqual({ accepted, payment: plain })
      }),
      { numRuns: 2_000 },
    )
  })

  it('says nothing of a header that anyone has changed into another payment’s spelling', () => {
    const headers = learned()
    const good = headerOf({ stream: '0f'.repeat(32), position: 77, value: new Uint8Array(32).fill(9) })
    const text = base64ToText(good, 'header')
    const edits = fc.record({ at: fc.nat(text.length), cut: fc.nat(4), put: fc.string({ maxLength: 6 }) })
    fc.assert(
      fc.property(edits, ({ at, cut, put }) => {
        const header = toBase64(new TextEncoder().encode(text.slice(0, at) + put + text.slice(at + cut)))
        const plain = headers.read(header)
        if (plain !== undefined) expect(parsed(header)).toEqual({ accepted, payment: plain })
      }),
      { numRuns: 3_000 },
    )
  })

  it.each([
    ['spaces in its base64', (header: string) => `${header.slice(0, 40)} ${header.slice(40)}`],
    ['a sign that is none', (header: string) => `${header.slice(0, 40)}!${header.slice(40)}`],
    ['no padding', (header: string) => header.replace(/=+$/, '')],
    ['leftover bits in its last digit', (header: string) => header.replace(/.(?==*$)/, (digit) => String.fromCharCode(digit.charCodeAt(0) + 1))],
  ])('leaves %s to the parser', (_, change) => {
    for (const position of [7, 77, 777]) {
      const header = headerOf({ stream: '0f'.repeat(32), position, value: new Uint8Array(32) })
      const changed = change(header)
      if (changed === header) continue
      const plain = learned().read(changed)
      if (plain !== undefined) expect(parsed(changed)).toEqual({ accepted, payment: plain })
    }
  })

  it('does not learn a beginning that hides a payload of its own', () => {
    const headers = new PlainHeaders()
    const hidden = `{"x402Version":2,"accepted":{"a":1,"payload":{"stream":"${'0'.repeat(64)}","position":1,"value":"${'0'.repeat(64)}"}},"payload":{"stream":"${'1'.repeat(64)}","position":2,"value":"${'1'.repeat(64)}"}}`
    headers.learn(toBase64(new TextEncoder().encode(hidden)))
    expect(headers.read(toBase64(new TextEncoder().encode(hidden)))).toBeUndefined()
    const other = `{"x402Version":2,"accepted":{},"extensions":{},"payload":{"stream":"${'1'.repeat(64)}","position":2,"value":"${'1'.repeat(64)}"}}`
    headers.learn(toBase64(new TextEncoder().encode(other)))
    expect(headers.read(toBase64(new TextEncoder().encode(other)))).toBeUndefined()
  })
})
