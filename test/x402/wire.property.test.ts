import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InputError, textToBase64 } from '../../src/codec/index.js'
import { parseExactPayload } from '../../src/x402/exact/payment.js'
import {
  decodePayment,
  decodePaymentRequired,
  decodeSettlement,
  encodePayment,
  encodeSettlement,
  MAX_PAYMENT_HEADER_BYTES,
} from '../../src/x402/headers.js'
import {
  parsePaymentPayload,
  parsePaymentRequired,
  parseRequirements,
  parseSettleResponse,
  type PaymentPayload,
  type PaymentRequired,
  type PaymentRequirements,
} from '../../src/x402/wire.js'
import { memoryNonceStore } from '../../src/x402/stores/index.js'
import { createSeller } from '../../src/facilitator/seller.js'
import { fakeFacilitator } from './support/fake-facilitator.js'
import { CHAIN, PAYEE } from './support/payments.js'

const requirements: PaymentRequirements = {
  scheme: 'exact',
  network: 'sion:c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0',
  asset: 'USD',
  amount: '250000',
  payTo: PAYEE,
  maxTimeoutSeconds: 300,
  extra: { chain: CHAIN, decimals: 6, nonce: 'ab'.repeat(16), purpose: `x402:${'ab'.repeat(16)}` },
}
const payment: PaymentPayload = {
  x402Version: 2,
  resource: { url: '/v1/resource', description: 'weather, now with 🌧️ and “quotes”', mimeType: 'application/json' },
  accepted: requirements,
  payload: { transaction: 'AAAA' },
  extensions: { theirs: { kept: true } },
}
const required: PaymentRequired = { x402Version: 2, resource: payment.resource!, accepts: [requirements] }

/** JSON that is nearly a payment: one that is good, with any JSON in the place of any part. */
function nearly(good: object): fc.Arbitrary<unknown> {
  const paths = pathsOf(good)
  return fc.tuple(fc.constantFrom(...paths), fc.oneof(fc.jsonValue(), fc.constant(undefined))).map(([path, value]) => replaced(good, path, value))
}

function pathsOf(value: unknown, at: readonly string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [[...at]]
  return [[...at], ...Object.entries(value).flatMap(([key, inner]) => pathsOf(inner, [...at, key]))]
}

function replaced(value: unknown, [first, ...rest]: readonly string[], by: unknown): unknown {
  if (first === undefined) return by
  const copy: Record<string, unknown> = Array.isArray(value) ? ([...value] as never) : { ...(value as object) }
  const inner = replaced(copy[first], rest, by)
  if (inner === undefined) delete copy[first]
  else copy[first] = inner
  return copy
}

/** Text that breaks careless code: lone surrogates, controls, names of the object prototype. */
const oddText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.constantFrom('\ud800', '\udc00', '\u0000', 'a') }),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty'),
)

function ourErrorOrValue(parse: () => unknown): void {
  try {
    expect(parse()).toBeTypeOf('object')
  } catch (error) {
    expect(error).toBeInstanceOf(InputError)
    expect((error as Error).message).not.toMatch(/[\n\r]/)
  }
}

describe('messages of x402', () => {
  const parsers: [string, (value: unknown) => unknown, object][] = [
    ['a payment', (value) => parsePaymentPayload(value), payment],
    ['a 402', (value) => parsePaymentRequired(value), required],
    ['requirements', (value) => parseRequirements(value, 'requirements'), requirements],
    ['a settlement', (value) => parseSettleResponse(value), { success: true, transaction: 'ab', network: 'sion:ab', payer: 'p', errorReason: 'r' }],
  ]
  for (const [name, parse, good] of parsers) {
    it(`${name}: any JSON is a value or an input error`, () => {
      fc.assert(fc.property(fc.jsonValue(), (value) => ourErrorOrValue(() => parse(value))))
    })
    it(`${name}: JSON that is nearly right is a value or an input error`, () => {
      expect(parse(good)).toEqual(good)
      fc.assert(fc.property(nearly(good), (value) => ourErrorOrValue(() => parse(value))), { numRuns: 500 })
    })
  }

  it('an exact payload: any object is a payment or an input error', () => {
    const odd = fc.oneof(fc.jsonValue(), oddText, fc.base64String())
    const payload = fc.record({ transaction: odd, digest: fc.oneof(odd, fc.constant('ab'.repeat(32))), proof: odd }, { requiredKeys: [] })
    fc.assert(fc.property(payload, (value) => ourErrorOrValue(() => parseExactPayload(value))), { numRuns: 500 })
  })

  const anyHeader = fc.oneof(
    oddText,
    fc.base64String(),
    fc.json().map(textToBase64),
    nearly(payment).map((value) => textToBase64(JSON.stringify(value) ?? '')),
    fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64')),
  )

  it('any header is a value or an input error of one line', () => {
    fc.assert(
      fc.property(anyHeader, (header) => {
        ourErrorOrValue(() => decodePayment(header))
        ourErrorOrValue(() => decodePaymentRequired(header))
        ourErrorOrValue(() => decodeSettlement(header))
      }),
      { numRuns: 1_000 },
    )
  })

  it('any payment header is answered 400 or 402, and no facilitator hears of it', async () => {
    const facilitator = fakeFacilitator()
    const store = memoryNonceStore()
    const seller = createSeller({ payTo: PAYEE, chain: CHAIN, store, facilitator }, () => ({ verify: () => Promise.resolve(false) }))
    const route = seller.route('0.25')
    await fc.assert(
      fc.asyncProperty(anyHeader, async (header) => {
        const request = { method: 'GET', target: '/v1/resource', header: (name: string) => (name === 'PAYMENT-SIGNATURE' ? header : undefined) }
        const admission = await route.admit(request, undefined)
        expect(admission).toMatchObject({ kind: 'answer', answer: { status: expect.toSatisfy((status) => status === 400 || status === 402) } })
      }),
      { numRuns: 1_000 },
    )
    expect(facilitator.verified).toEqual([])
    expect(facilitator.settled).toEqual([])
  })
})

describe('a payment header', () => {
  it('carries emoji and quotes, and what it does not know, both ways', () => {
    expect(decodePayment(encodePayment(payment))).toEqual(payment)
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 4 }), (description, theirs) => {
        const sent = { ...payment, resource: { url: '/', description }, extensions: { theirs }, more: theirs }
        expect(decodePayment(encodePayment(sent))).toEqual(JSON.parse(JSON.stringify(sent)))
      }),
    )
  })

  it('is read in the standard and the URL-safe alphabet, padded or not', () => {
    const sent = { ...payment, resource: { url: '/', description: '>>>???~~~ÿÿÿ' } }
    const standard = encodePayment(sent)
    const urlSafe = Buffer.from(JSON.stringify(sent)).toString('base64url')
    expect(standard).toMatch(/[+/]/)
    expect(urlSafe).toMatch(/[-_]/)
    for (const header of [standard, standard.replace(/=+$/, ''), urlSafe]) expect(decodePayment(header)).toEqual(sent)
  })

  it('that is too long is refused before it is decoded, and says to pay by reference', () => {
    const long = '!'.repeat(MAX_PAYMENT_HEADER_BYTES + 1)
    expect(() => decodePayment(long)).toThrow(expect.objectContaining({ code: 'payment_too_large' }))
    expect(() => decodePayment('!'.repeat(MAX_PAYMENT_HEADER_BYTES))).toThrow(/not base64/)
    const room = (MAX_PAYMENT_HEADER_BYTES / 4) * 3 - Buffer.byteLength(JSON.stringify({ ...payment, pad: '' }))
    const longest = { ...payment, pad: 'x'.repeat(room) }
    expect(encodePayment(longest)).toHaveLength(MAX_PAYMENT_HEADER_BYTES)
    expect(decodePayment(encodePayment(longest))).toEqual(longest)
  })

  it.each<[string, string, RegExp]>([
    ['empty', '', /PAYMENT-SIGNATURE: not JSON/],
    ['not base64', '%%%', /not base64/],
    ['base64 with a space', 'e30 ', /not base64/],
    ['base64 of half a byte', 'e', /not base64/],
    ['base64 with bits left over', 'e31=', /not base64/],
    ['not UTF-8', Buffer.from([0xff, 0xfe]).toString('base64'), /not UTF-8/],
    ['not JSON', textToBase64('{"x402Version":2'), /not JSON under its base64/],
    ['JSON null', textToBase64('null'), /expected an object, not null/],
    ['a JSON array', textToBase64('[]'), /expected an object, not an array/],
    ['a JSON number', textToBase64('2'), /expected an object, not a number/],
    ['version 1', textToBase64(JSON.stringify({ ...payment, x402Version: 1 })), /x402Version: expected 2, not 1/],
    ['accepted: null', textToBase64(JSON.stringify({ ...payment, accepted: null })), /payment\.accepted: expected an object, not null/],
    ['accepted: []', textToBase64(JSON.stringify({ ...payment, accepted: [requirements] })), /payment\.accepted: expected an object, not an array/],
    ['payload: text', textToBase64(JSON.stringify({ ...payment, payload: 'AAAA' })), /payment\.payload: expected an object, not a string/],
    ['no payload', textToBase64(JSON.stringify({ ...payment, payload: undefined })), /payment\.payload: expected an object, not nothing/],
    ['an amount that is a number', textToBase64(JSON.stringify({ ...payment, accepted: { ...requirements, amount: 1 } })), /accepted\.amount: expected text/],
    ['a network that is none', textToBase64(JSON.stringify({ ...payment, accepted: { ...requirements, network: 'sion' } })), /CAIP-2/],
    ['deep nesting', textToBase64(JSON.stringify({ ...payment, extensions: { deep: JSON.parse('['.repeat(40) + ']'.repeat(40)) } })), /nested deeper than 16/],
    ['very deep nesting', textToBase64('['.repeat(4_000)), /not JSON/],
    ['an odd field', textToBase64(`{"x402Version":2,"accepted":{"scheme":"\\ud800"}}`), /maxTimeoutSeconds/],
  ])('that is %s is refused in one line that says so', (_, header, message) => {
    expect(() => decodePayment(header)).toThrow(message)
    try {
      decodePayment(header)
    } catch (error) {
      expect(error).toBeInstanceOf(InputError)
      expect((error as Error).message.length).toBeLessThan(200)
    }
  })

  it('is never quoted by the error that refuses it', () => {
    const secretish = textToBase64('{"payload":{"transaction":"c2VjcmV0c2VjcmV0"}, oops')
    expect(() => decodePayment(secretish)).toThrow(expect.objectContaining({ message: expect.not.stringContaining('c2VjcmV0') }))
  })

  it('takes nothing from the object prototype: fields named like its own are only data', () => {
    const text = JSON.stringify(payment).replace('"theirs":', '"__proto__":{"nonce":1},"constructor":')
    const read = decodePayment(textToBase64(text))
    expect(Object.getPrototypeOf(read.extensions)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)['nonce']).toBeUndefined()
  })
})

describe('a settlement header', () => {
  it('carries every reason, and what it does not know, both ways', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.jsonValue({ maxDepth: 4 }), (errorReason, theirs) => {
        const sent = { success: false, errorReason, transaction: '', network: 'sion:ab' as const, extensions: { theirs } }
        expect(decodeSettlement(encodeSettlement(sent))).toEqual(JSON.parse(JSON.stringify(sent)))
      }),
    )
  })

  it('reads null where others say nothing', () => {
    const theirs = textToBase64(JSON.stringify({ success: true, errorReason: null, payer: null, transaction: 'ab', network: 'sion:ab' }))
    expect(decodeSettlement(theirs)).toEqual({ success: true, transaction: 'ab', network: 'sion:ab' })
  })
})
