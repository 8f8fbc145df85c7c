import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ClaimAnswer, NonceClaim, NonceStore } from '../../src/x402/nonce-store.js'

/** A store to hold to the contract, and the clock it goes by. */
export interface StoreUnderTest {
  readonly store: NonceStore
  /** Another opening of the same data, as another server of this seller would have. */
  open(): NonceStore
  /** The store's own time, milliseconds since the Unix epoch. */
  now(): Promise<number>
  /** Resolves when at least so much of the store's time has passed. */
  pass(ms: number): Promise<void>
  end(): Promise<void>
}

const hex = (bytes: number): string => randomBytes(bytes).toString('hex')

/** Everything that src/x402/nonce-store.ts promises, over one store. */
export function describeNonceStore(name: string, make: () => Promise<StoreUnderTest>): void {
  describe(`nonces in ${name}`, () => {
    let made: StoreUnderTest
    let store: NonceStore
    let keepUntil: number

    beforeAll(async () => {
      made = await make()
      ;({ store } = made)
      keepUntil = Math.floor((await made.now()) / 1_000) + 10_000
    })
    afterAll(() => made.end())

    const claimOf = (changes: Partial<NonceClaim> = {}): NonceClaim => ({
      nonce: hex(16),
      payment: hex(32),
      holder: hex(16),
      leaseMs: 60_000,
      keepUntil,
      ...changes,
    })

    it('lets exactly one of a hundred concurrent claims have the nonce, over two openings of it', async () => {
      const { nonce, payment } = claimOf()
      const other = made.open()
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) => (i % 2 === 0 ? store : other).claim(claimOf({ nonce, payment }))),
      )
      expect(count(answers)).toEqual({ claimed: 1, held: 99 })
      await other.close()
    })

    it('lets exactly one of a hundred concurrent payments stand behind a nonce', async () => {
      const { nonce } = claimOf()
      const answers = await Promise.all(Array.from({ length: 100 }, () => store.claim(claimOf({ nonce }))))
      expect(count(answers)).toEqual({ claimed: 1, bound: 99 })
    })

    it('lets a hundred different nonces be claimed at once', async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, () => store.claim(claimOf())))
      expect(count(answers)).toEqual({ claimed: 100 })
    })

    it('holds a claimed nonce against the same payment, and keeps it bound against another', async () => {
      const first = claimOf()
      expect(await store.claim(first)).toBe('claimed')
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('held')
      expect(await store.claim(claimOf({ nonce: first.nonce }))).toBe('bound')
      expect(await store.boundTo(first.nonce)).toBe(first.payment)
    })

    it('answers a claim that is made again by its own holder as it did the first time', async () => {
      const first = claimOf()
      expect([await store.claim(first), await store.claim(first)]).toEqual(['claimed', 'claimed'])
      expect(await store.spend(first.nonce, first.holder)).toBe(true)
    })

    it('answers spent for ever to the payment that spent, and bound to any other', async () => {
      const first = claimOf()
      await store.claim(first)
      expect(await store.spend(first.nonce, first.holder)).toBe(true)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('spent')
      expect(await store.claim(first)).toBe('spent')
      expect(await store.claim(claimOf({ nonce: first.nonce }))).toBe('bound')
      expect(await store.boundTo(first.nonce)).toBe(first.payment)
      expect(await store.renew(first.nonce, first.holder, 60_000)).toBe(false)
    })

    it('answers a spend that is made again by its own holder as it did the first time', async () => {
      const first = claimOf()
      await store.claim(first)
      expect([await store.spend(first.nonce, first.holder), await store.spend(first.nonce, first.holder)]).toEqual([true, true])
      expect(await store.spend(first.nonce, hex(16))).toBe(false)
    })

    it('spends, renews and releases nothing for whoever does not hold the nonce', async () => {
      const first = claimOf()
      await store.claim(first)
      const stranger = hex(16)
      expect(await store.spend(first.nonce, stranger)).toBe(false)
      expect(await store.renew(first.nonce, stranger, 60_000)).toBe(false)
      await store.release(first.nonce, stranger)
      expect(await store.claim({ ...first, holder: stranger })).toBe('held')
    })

    it('knows nothing of a nonce that was never claimed', async () => {
      const { nonce, holder } = claimOf()
      expect(await store.boundTo(nonce)).toBeUndefined()
      expect(await store.spend(nonce, holder)).toBe(false)
      expect(await store.renew(nonce, holder, 60_000)).toBe(false)
      await store.release(nonce, holder)
      expect(await store.boundTo(nonce)).toBeUndefined()
    })

    it('leaves a released nonce bound to its payment, which may claim it again at once', async () => {
      const first = claimOf()
      await store.claim(first)
      await store.release(first.nonce, first.holder)
      expect(await store.boundTo(first.nonce)).toBe(first.payment)
      expect(await store.claim(claimOf({ nonce: first.nonce }))).toBe('bound')
      const again = { ...first, holder: hex(16) }
      expect(await store.claim(again)).toBe('claimed')
      expect(await store.spend(again.nonce, again.holder)).toBe(true)
    })

    it('takes no renewal or spend from a holder that has released', async () => {
      const first = claimOf()
      await store.claim(first)
      await store.release(first.nonce, first.holder)
      expect(await store.renew(first.nonce, first.holder, 60_000)).toBe(false)
      expect(await store.spend(first.nonce, first.holder)).toBe(false)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('claimed')
    })

    it('lets the holder that spent give the nonce back, and nobody else', async () => {
      const first = claimOf()
      await store.claim(first)
      await store.spend(first.nonce, first.holder)
      await store.release(first.nonce, hex(16))
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('spent')
      await store.release(first.nonce, first.holder)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('claimed')
      // Late news from the first holder changes nothing any more.
      await store.release(first.nonce, first.holder)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('held')
    })

    it('gives a nonce whose lease ran out to the same payment alone, and to one claim of it', async () => {
      const first = claimOf({ leaseMs: 30 })
      await store.claim(first)
      await made.pass(31)
      expect(await store.claim(claimOf({ nonce: first.nonce }))).toBe('bound')
      const answers = await Promise.all(Array.from({ length: 20 }, () => store.claim({ ...first, holder: hex(16), leaseMs: 60_000 })))
      expect(count(answers)).toEqual({ claimed: 1, held: 19 })
    })

    it('takes nothing from a holder whose lease ran out and was taken over', async () => {
      const first = claimOf({ leaseMs: 30 })
      await store.claim(first)
      await made.pass(31)
      const second = { ...first, holder: hex(16), leaseMs: 60_000 }
      expect(await store.claim(second)).toBe('claimed')
      expect(await store.renew(first.nonce, first.holder, 60_000)).toBe(false)
      expect(await store.spend(first.nonce, first.holder)).toBe(false)
      await store.release(first.nonce, first.holder)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('held')
      expect(await store.spend(second.nonce, second.holder)).toBe(true)
    })

    it('lets a late holder still spend where nobody took over: its handler ran, and no other did', async () => {
      const first = claimOf({ leaseMs: 30 })
      await store.claim(first)
      await made.pass(31)
      expect(await store.spend(first.nonce, first.holder)).toBe(true)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('spent')
    })

    it('holds a renewed nonce past the end of its first lease', async () => {
      const first = claimOf({ leaseMs: 30 })
      await store.claim(first)
      expect(await store.renew(first.nonce, first.holder, 60_000)).toBe(true)
      await made.pass(31)
      expect(await store.claim({ ...first, holder: hex(16) })).toBe('held')
    })

    it('forgets a record after its time and not before, spent or not', async () => {
      const seconds = Math.floor((await made.now()) / 1_000)
      const spent = claimOf({ keepUntil: seconds + 2 })
      const bound = claimOf({ keepUntil: seconds + 2 })
      await store.claim(spent)
      await store.spend(spent.nonce, spent.holder)
      await store.claim(bound)
      await store.release(bound.nonce, bound.holder)
      const remembered = [await store.claim({ ...spent, holder: hex(16) }), await store.boundTo(bound.nonce)]
      expect((await made.now()) <= (seconds + 2) * 1_000).toBe(true)
      expect(remembered).toEqual(['spent', bound.payment])

      await made.pass((seconds + 2) * 1_000 + 1 - (await made.now()))
      expect(await store.boundTo(spent.nonce)).toBeUndefined()
      expect(await store.boundTo(bound.nonce)).toBeUndefined()
      expect(await store.spend(spent.nonce, spent.holder)).toBe(false)
      expect(await store.claim(claimOf({ nonce: bound.nonce }))).toBe('claimed')
    })

    it('makes one secret of 32 bytes for all who ask first at the same time', async () => {
      const fresh = await make()
      const openings = Array.from({ length: 5 }, () => fresh.open())
      const secrets = await Promise.all([fresh.store, ...openings].flatMap((opening) => [opening.secret(), opening.secret()]))
      expect(secrets[0]).toHaveLength(32)
      expect(new Set(secrets.map((secret) => Buffer.from(secret).toString('hex'))).size).toBe(1)
      expect(Buffer.from(await store.secret())).not.toEqual(Buffer.from(secrets[0]!))
      for (const opening of openings) await opening.close()
      await fresh.end()
    })
  })
}

function count(answers: readonly ClaimAnswer[]): Partial<Record<ClaimAnswer, number>> {
  const counts: Partial<Record<ClaimAnswer, number>> = {}
  for (const answer of answers) counts[answer] = (counts[answer] ?? 0) + 1
  return counts
}
