import { describe, expect, it } from 'vitest'
import { expressFramework } from '../express/framework.js'
import { honoFramework } from '../hono/framework.js'
import { MAX_KEPT_BYTES, Replays, replayKey } from '../../src/x402/replays.js'
import { openShop } from './support/shop.js'

describe.each([expressFramework, honoFramework])('a seller in $name that gives bought answers again', (framework) => {
  it('gives the same answer to the same payment and request, and the handler runs once', async () => {
    const shop = await openShop(framework, { handler: 'json', seller: { replaySeconds: 60 } }, '')
    try {
      const { header } = await shop.pay()
      const ask = { headers: { 'PAYMENT-SIGNATURE': header } }
      const first = await shop.ask(ask)
      const second = await shop.ask(ask)
      expect([first.status, second.status]).toEqual([200, 200])
      expect(second.body).toBe(first.body)
      expect(second.headers['payment-response']).toBe(first.headers['payment-response'])
      expect(second.headers['cache-control']).toBe(first.headers['cache-control'])
      expect(shop.scene.calls).toBe(1)
    } finally {
      await shop.stop()
    }
  })

  it('gives nothing to the same payment for another request, or where the seller does not let it', async () => {
    const shop = await openShop(framework, { handler: 'json', seller: { replaySeconds: 60 } }, '')
    const strict = await openShop(framework, { handler: 'json' }, '')
    try {
      const { header } = await shop.pay()
      const headers = { 'PAYMENT-SIGNATURE': header }
      expect((await shop.ask({ headers })).status).toBe(200)
      expect((await shop.ask({ headers, path: '/a?other=1' })).status).toBe(402)
      const other = { headers: { 'PAYMENT-SIGNATURE': (await strict.pay()).header } }
      expect((await strict.ask(other)).status).toBe(200)
      expect((await strict.ask(other)).status).toBe(402)
    } finally {
      await shop.stop()
      await strict.stop()
    }
  })
})

describe('answers kept to be given again', () => {
  const answer = (bytes: number) => ({ status: 200, headers: {}, body: new Uint8Array(bytes) })

  it('are forgotten after their time, and not in its last millisecond', () => {
    let now = 0
    const replays = new Replays(60, () => now)
    replays.keep('a', answer(1))
    now = 60_000
    expect(replays.get('a')).toEqual(answer(1))
    now = 60_001
    expect(replays.get('a')).toBeUndefined()
  })

  it('are bounded, each and all together, the oldest going first', () => {
    const replays = new Replays(60, () => 0)
    replays.keep('long', answer(MAX_KEPT_BYTES + 1))
    expect(replays.get('long')).toBeUndefined()
    for (let i = 0; i < 257; i++) replays.keep(String(i), answer(MAX_KEPT_BYTES))
    expect(replays.get('0')).toBeUndefined()
    expect(replays.get('1')).toBeDefined()
    expect(replays.get('256')).toBeDefined()
  })

  it('are for one method, target and payment, and for no request that may carry a body', () => {
    const keys = new Set([
      replayKey('GET', '/a', 'p'),
      replayKey('HEAD', '/a', 'p'),
      replayKey('GET', '/b', 'p'),
      replayKey('GET', '/a', 'q'),
    ])
    expect(keys.size).toBe(4)
    expect(replayKey('POST', '/a', 'p')).toBeUndefined()
  })
})
