import { describe, expect, it } from 'vitest'
import { requiredOf } from '../../src/x402/required.js'
import type { Charge, SellerScheme } from '../../src/x402/scheme.js'
import type { PaymentRequirements } from '../../src/x402/wire.js'
import { CHAIN, PAYEE } from './support/payments.js'

const charge: Charge = { method: 'GET', target: '/a', amount: 250_000n, chain: CHAIN }

let issued = 0
const fresh = (): string => (++issued).toString(16).padStart(32, '0')

function schemeOf(name: string, quotesDiffer: SellerScheme['quotesDiffer'], extra: (nonce: string) => Record<string, unknown>): SellerScheme {
  return {
    scheme: name,
    async quote({ amount }): Promise<PaymentRequirements> {
      const network = 'sion:c0'
      return { scheme: name, network, asset: 'USD', amount: `${amount}`, payTo: PAYEE, maxTimeoutSeconds: 300, extra: extra(fresh()) }
    },
    quotesDiffer,
    ...(quotesDiffer === 'by nonce' ? { nonce: fresh } : {}),
    take: () => Promise.reject(new Error('not asked')),
  }
}

function nonceIn(json: string): string {
  return /"nonce":"([0-9a-f]{32})"/.exec(json)?.[1] ?? 'none'
}

const exact = schemeOf('exact', 'by nonce', (nonce) => ({ nonce, purpose: `x402:${nonce}` }))
const stream = schemeOf('stream', 'not', () => ({ margin: 10 }))

describe('what a 402 says', () => {
  it.each([
    ['a scheme with a nonce', [exact]],
    ['one with and one without', [exact, stream]],
    ['one without and one with', [stream, exact]],
    ['one without', [stream]],
  ])('from %s is known from the second time on, but for the nonce', async (_, schemes) => {
    const required = requiredOf({ schemes, origin: 'https://api.example.com', description: '🌧️ "quoted" 0000', mimeType: 'text/csv' })
    expect(required.now(charge, '/a')).toBeUndefined()
    const whole = JSON.stringify(await required.of(charge, '/a'))
    const seen = new Set<string>()
    for (let time = 0; time < 5; time++) {
      const json = required.now(charge, '/a') ?? ''
      seen.add(nonceIn(json))
      expect(json).toBe(whole.replaceAll(nonceIn(whole), nonceIn(json)))
    }
    expect(seen.size).toBe(schemes.includes(exact) ? 5 : 1)
    expect(seen).not.toContain(schemes.includes(exact) ? nonceIn(whole) : undefined)
  })

  it('is not known from a refusal, which says why', async () => {
    const required = requiredOf({ schemes: [exact] })
    expect(await required.of(charge, '/a', 'used')).toMatchObject({ error: 'used' })
    expect(required.now(charge, '/a')).toBeUndefined()
  })

  it('is known for each path, amount and chain apart', async () => {
    const required = requiredOf({ schemes: [exact] })
    for (const [change, path] of [[{}, '/a'], [{}, '/b'], [{ amount: 1n }, '/a'], [{ chain: 'c1'.repeat(32) }, '/a']] as const) {
      const of = { ...charge, ...change }
      expect(required.now(of, path)).toBeUndefined()
      await required.of(of, path)
      const read = JSON.parse(required.now(of, path) ?? '')
      expect([read.resource.url, read.accepts[0].amount]).toEqual([path, `${of.amount}`])
    }
  })

  it.each<[string, SellerScheme[]]>([
    ['a scheme’s quotes may differ in more than a nonce', [exact, schemeOf('other', 'freely', () => ({}))]],
    ['there are two nonces', [exact, schemeOf('other', 'by nonce', (nonce) => ({ nonce }))]],
    ['the nonce must be waited for', [{ ...exact, nonce: () => undefined }]],
  ])('is never known where %s', async (_, schemes) => {
    const required = requiredOf({ schemes })
    await required.of(charge, '/a')
    expect(required.now(charge, '/a')).toBeUndefined()
  })

  it('is right for more paths than are remembered, and not remembered for very long ones', async () => {
    const required = requiredOf({ schemes: [exact] })
    for (let i = 0; i < 600; i++) {
      await required.of(charge, `/${i}`)
      expect(JSON.parse(required.now(charge, `/${i}`) ?? '').resource.url).toBe(`/${i}`)
    }
    const long = `/${'x'.repeat(5_000)}`
    await required.of(charge, long)
    expect(required.now(charge, long)).toBeUndefined()
  })
})
