import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InputError } from '../../src/codec/index.js'
import { checkNonce, expiryOf, issueNonce, purposeOf, QUOTE_SECONDS, type QuoteTerms } from '../../src/x402/quote.js'

const secret = new Uint8Array(32).fill(7)
const now = 1_700_000_000
const terms: QuoteTerms = {
  method: 'GET',
  target: '/v1/resource',
  amount: 250_000n,
  payee: 'ee'.repeat(32),
  chain: 'c0'.repeat(32),
}

/** The nonce's last six bytes as src/x402/quote.ts describes them, written apart from its code. */
function macOf(head: Buffer, { method, target, amount, payee, chain }: QuoteTerms, key = secret): string {
  const length = Buffer.alloc(2)
  length.writeUInt16BE(Buffer.byteLength(method))
  const targetLength = Buffer.alloc(4)
  targetLength.writeUInt32BE(Buffer.byteLength(target))
  const money = Buffer.alloc(8)
  money.writeBigUInt64BE(amount)
  const parts = [head, length, Buffer.from(method), targetLength, Buffer.from(target), money, Buffer.from(payee, 'hex'), Buffer.from(chain, 'hex')]
  return createHmac('sha256', key).update(Buffer.concat(parts)).digest('hex').slice(0, 12)
}

describe('a quote', () => {
  it.each([
    ['6553f22c000102030405', { ...terms }, '2fc75b18199e'],
    ['6553f22cffffffffffff', { ...terms, method: 'POST', target: '/a?b=c&d=%C3%A9', amount: 1n }, 'dfcdb480a463'],
    ['ffffffff000000000000', { ...terms, target: '/', amount: 2n ** 53n - 1n }, '41621f34b4b5'],
  ])('has a nonce whose bytes are fixed: %s…', (head, of, mac) => {
    expect(checkNonce(secret, `${head}${mac}`, of, now)).toEqual({ kind: 'fresh' })
    expect(macOf(Buffer.from(head, 'hex'), of)).toBe(mac)
  })

  it('is issued as it is defined: expiry, random, truncated HMAC', () => {
    const nonce = issueNonce(secret, terms, now)
    expect(nonce).toMatch(/^[0-9a-f]{32}$/)
    expect(expiryOf(nonce)).toBe(now + QUOTE_SECONDS)
    expect(nonce.slice(20)).toBe(macOf(Buffer.from(nonce.slice(0, 20), 'hex'), terms))
    expect(issueNonce(secret, terms, now)).not.toBe(nonce)
    expect(purposeOf(nonce)).toBe(`x402:${nonce}`)
  })

  it('is fresh to its last second and expired from the next', () => {
    const nonce = issueNonce(secret, terms, now)
    expect(checkNonce(secret, nonce, terms, now + 299)).toEqual({ kind: 'fresh' })
    expect(checkNonce(secret, nonce, terms, now + 300)).toEqual({ kind: 'fresh' })
    expect(checkNonce(secret, nonce, terms, now + 301)).toEqual({ kind: 'expired', secondsAgo: 1 })
  })

  it.each<[string, Partial<QuoteTerms>]>([
    ['method', { method: 'POST' }],
    ['path', { target: '/v1/Resource' }],
    ['trailing slash', { target: '/v1/resource/' }],
    ['query', { target: '/v1/resource?' }],
    ['amount', { amount: 250_001n }],
    ['payee', { payee: 'ed'.repeat(32) }],
    ['chain', { chain: 'c1'.repeat(32) }],
  ])('is nothing for another %s', (_, change) => {
    const nonce = issueNonce(secret, terms, now)
    expect(checkNonce(secret, nonce, { ...terms, ...change }, now)).toEqual({ kind: 'unknown' })
  })

  it('is nothing to a seller with another secret', () => {
    expect(checkNonce(new Uint8Array(32).fill(8), issueNonce(secret, terms, now), terms, now)).toEqual({ kind: 'unknown' })
  })

  it('cannot be made to last longer, nor be made from another', () => {
    const nonce = issueNonce(secret, terms, now)
    for (let digit = 0; digit < 32; digit++) {
      const changed = `${nonce.slice(0, digit)}${((Number.parseInt(nonce[digit] ?? '', 16) + 1) % 16).toString(16)}${nonce.slice(digit + 1)}`
      expect(checkNonce(secret, changed, terms, now)).toEqual({ kind: 'unknown' })
    }
  })

  it('of no 32 hex digits is an input error, not a quote', () => {
    for (const nonce of ['', 'ab', 'AB'.repeat(16), 'g'.repeat(32), 'a'.repeat(34)]) {
      expect(() => checkNonce(secret, nonce, terms, now)).toThrow(InputError)
    }
  })

  const anyTerms = fc.record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'GETP'),
    target: fc.webPath().map((path) => `/${path}`),
    amount: fc.bigInt({ min: 1n, max: 2n ** 53n - 1n }),
    payee: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
    chain: fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex')),
  })

  it('is known for the very terms it was issued for, whatever they are, and for no others', () => {
    fc.assert(
      fc.property(anyTerms, anyTerms, fc.integer({ min: 0, max: 2 ** 32 - 301 }), (ours, others, at) => {
        const nonce = issueNonce(secret, ours, at)
        expect(checkNonce(secret, nonce, ours, at)).toEqual({ kind: 'fresh' })
        const same = JSON.stringify({ ...ours, amount: `${ours.amount}` }) === JSON.stringify({ ...others, amount: `${others.amount}` })
        expect(checkNonce(secret, nonce, others, at).kind).toBe(same ? 'fresh' : 'unknown')
      }),
    )
  })

  it('keeps method and path apart: what ends one does not begin the other', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 7 }), (text, cut) => {
        const joined = `GET${text}`
        const at = Math.min(cut, joined.length - 1)
        const [one, other] = [{ ...terms, method: 'GET', target: text }, { ...terms, method: joined.slice(0, at), target: joined.slice(at) }]
        if (one.method === other.method) return
        expect(checkNonce(secret, issueNonce(secret, one, now), other, now).kind).toBe('unknown')
      }),
    )
  })
})
