import { describe, expect, it } from 'vitest'
import { requiredOf } from '../../src/x402/required.js'
import type { Charge, SellerScheme } from '../../src/x402/scheme.js'
import type { PaymentRequirements } from '../../src/x402/wire.js'
import { CHAIN, PAYEE } from './support/payments.js'

const charge: Charge = { method: 'GET', target: '/a', amount: 250_000n, chain: CHAIN }

let issued = 0
const fresh = async (): Promise<string> => (++issued).toString(16).padStart(32, '0')

function schemeOf(name: string, extra: (nonce: string) => Record<string, unknown>, nonce?: SellerScheme['nonce']): SellerScheme {
  return {
    scheme: name,
    async quote({ amount }): Promise<PaymentRequirements> {
      const network = 'sion:c0'
      return { scheme: name, network, asset: 'USD', amount: `${amount}`, payTo: PAYEE, maxTimeoutSeconds: 300, extra: extra(await fresh()) }
    },
    ...(nonce === undefined ? {} : { nonce }),
    take: () => Promise.reject(new Error('not asked')),
  }
}

function nonceIn(json: string): string {
  return /"nonce":"([0-9a-f]{32})"/.exec(json)?.[1] ?? 'none'
}

const exact = schemeOf('exact', (nonce) => ({ nonce, purpose: `x402:${nonce}` }), fresh)
const stream = schemeOf('stream', () => ({ margin: 10 }), async () => undefined)

describe('the JSON of a 402', () => {
  it.each([
    ['a scheme with a nonce', [exact]],
    ['one with and one without', [exact, stream]],
    ['one without', [stream]],
  ])('from %s is that of the object, but for the nonce, however often it is asked', async (_, schemes) => {
    const required = requiredOf({ schemes, origin: 'https://api.example.com', description: '🌧️ "quoted" 0000', mimeType: 'text/csv' })
    const seen = new Set<string>()
    for (let time = 0; time < 5; time++) {
      const json = await required.json(charge, '/a')
      const whole = JSON.stringify(await required.of(charge, '/a'))
      seen.add(nonceIn(json))
      expect(json).toBe(whole.replaceAll(nonceIn(whole), nonceIn(json)))
    }
    expect(seen.size).toBe(schemes.includes(exact) ? 5 : 1)
  })

  it('keeps paths, amounts and chains apart', async () => {
    const required = requiredOf({ schemes: [exact] })
    for (const [change, path] of [[{}, '/a'], [{}, '/b'], [{ amount: 1n }, '/a'], [{ chain: 'c1'.repeat(32) }, '/a']] as const) {
      for (let time = 0; time < 2; time++) {
        const read = JSON.parse(await required.json({ ...charge, ...change }, path))
        expect([read.resource.url, read.accepts[0].amount]).toEqual([path, `${{ ...charge, ...change }.amount}`])
      }
    }
  })

  it('is written whole where a scheme’s quotes may differ in more than a nonce', async () => {
    let margin = 0
    const required = requiredOf({ schemes: [exact, schemeOf('other', () => ({ margin: ++margin }))] })
    const margins = [await required.json(charge, '/a'), await required.json(charge, '/a')].map((json) => JSON.parse(json).accepts[1].extra.margin)
    expect(margins).toEqual([1, 2])
  })

  it('is right for more paths than are remembered, and for very long ones', async () => {
    const required = requiredOf({ schemes: [exact] })
    for (let i = 0; i < 600; i++) {
      const path = i % 100 === 0 ? `/${'x'.repeat(5_000)}${i}` : `/${i % 300}`
      expect(JSON.parse(await required.json(charge, path)).resource.url).toBe(path)
    }
  })
})
