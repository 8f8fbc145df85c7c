import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keysFromSeed } from '../../src/crypto/keys.js'
import { accountOf } from '../../src/ledger/index.js'
import { quorumOf, totalStake, validatorId, validatorSetHash, validatorSetProblem, type Validator } from '../../src/pulse/index.js'
import { keysOf } from './sample.js'

const validator = (byte: number, stake = 1n): Validator => ({ keys: keysOf(byte), stake })

describe('a quorum', () => {
  it.each([
    [1n, 1n],
    [2n, 2n],
    [3n, 3n],
    [4n, 3n],
    [5n, 4n],
    [6n, 5n],
    [7n, 5n],
    [100n, 67n],
    [400_000n, 266_667n],
    [3n * 2n ** 60n, 2n * 2n ** 60n + 1n],
  ])('of %d is %d', (total, quorum) => {
    expect(quorumOf(total)).toBe(quorum)
  })

  it('is the least that is more than two thirds, so that two quorums share more than a third', () => {
    fc.assert(
      fc.property(fc.bigInt(1n, 2n ** 61n), (total) => {
        const quorum = quorumOf(total)
        expect(3n * quorum).toBeGreaterThan(2n * total)
        expect(3n * (quorum - 1n)).toBeLessThanOrEqual(2n * total)
        expect(quorum).toBeLessThanOrEqual(total)
        expect(3n * (2n * quorum - total)).toBeGreaterThan(total)
      }),
    )
  })
})

describe('a validator set', () => {
  it('adds up its stakes', () => {
    expect(totalStake([])).toBe(0n)
    expect(totalStake([validator(1, 2n), validator(2, 2n ** 53n - 1n), validator(3, 2n ** 53n - 1n)])).toBe(2n ** 54n)
  })

  it('is one where every key counts once and every stake counts', () => {
    expect(validatorSetProblem([validator(1)])).toBeUndefined()
    expect(validatorSetProblem([validator(1), validator(2), validator(3)])).toBeUndefined()
  })

  it.each<[string, Validator[], RegExp]>([
    ['is empty', [], /^an empty validator set$/],
    ['has a stake of zero', [validator(1), validator(2, 0n)], new RegExp(`^validator ${validatorId(keysOf(2)).slice(0, 8)} has no stake$`)],
    ['lists a validator twice', [validator(1), validator(2), validator(1)], /shares a key with another$/],
    ['lists an ML-DSA-44 key twice', [validator(1), { keys: { mlDsa: keysOf(1).mlDsa, slhDsa: keysOf(2).slhDsa }, stake: 1n }], /shares a key/],
    ['lists an SLH-DSA key twice', [validator(1), { keys: { mlDsa: keysOf(2).mlDsa, slhDsa: keysOf(1).slhDsa }, stake: 1n }], /shares a key/],
  ])('is none when it %s', (_, set, problem) => {
    expect(validatorSetProblem(set)).toMatch(problem)
  })

  it('has a hash that covers keys, stakes and order', () => {
    const sets = [
      [validator(1), validator(2)],
      [validator(2), validator(1)],
      [validator(1), validator(2, 2n)],
      [validator(1), validator(3)],
      [validator(1)],
      [],
    ]
    expect(new Set(sets.map(validatorSetHash)).size).toBe(sets.length)
  })

  it('gives a validator another id than the account of the same keys', () => {
    const { publicKeys } = keysFromSeed(new Uint8Array(32))
    expect(validatorId(publicKeys)).not.toBe(accountOf(publicKeys))
    expect(validatorId(keysOf(1))).not.toBe(validatorId({ mlDsa: keysOf(1).mlDsa, slhDsa: keysOf(2).slhDsa }))
  })
})
