import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js'
import { describe, expect, it } from 'vitest'
import { toHex } from '../../src/codec/index.js'
import { sha256, taggedHash } from '../../src/crypto/hash.js'
import { KeyCache } from '../../src/crypto/key-cache.js'
import { keysFromSeed, SIZES } from '../../src/crypto/keys.js'

const seed = Uint8Array.from({ length: 32 }, (_, at) => at)

describe('keys of a seed', () => {
  it('have the sizes of FIPS 204 and 205', () => {
    const keys = keysFromSeed(seed)
    expect(keys.publicKeys.mlDsa).toHaveLength(SIZES.mlDsaPublic)
    expect(keys.publicKeys.slhDsa).toHaveLength(SIZES.slhDsaPublic)
    expect(keys.mlDsaSecret).toHaveLength(SIZES.mlDsaSecret)
    expect(keys.slhDsaSecret).toHaveLength(SIZES.slhDsaSecret)
  })

  it('never change: a wallet of today opens tomorrow', () => {
    const { publicKeys } = keysFromSeed(seed)
    expect(toHex(sha256(publicKeys.mlDsa))).toBe('eb95b924325c34e76f6b31aace98be509998cadea0b27c47768f0b24df8d0d3f')
    expect(toHex(publicKeys.slhDsa)).toBe('bb8e647d2335031057693f32015a020450c934f6782d57ea741e862c20bad8cc')
  })

  it('come from hashes with tags of their own', () => {
    const keys = keysFromSeed(seed)
    const expanded = ml_dsa44.keygen(taggedHash('sion/ml-dsa-seed/v1', seed))
    expect(toHex(keys.publicKeys.mlDsa)).toBe(toHex(expanded.publicKey))
    expect(toHex(keys.slhDsaSecret.slice(0, 32))).toBe(toHex(taggedHash('sion/slh-dsa-seed/v1', seed)))
    expect(toHex(keys.publicKeys.slhDsa.slice(0, 16))).toBe(
      toHex(taggedHash('sion/slh-dsa-public-seed/v1', seed).slice(0, 16)),
    )
    expect(toHex(keys.slhDsaSecret.slice(32))).toBe(toHex(keys.publicKeys.slhDsa))
  })

  it('differ in both schemes when one bit of the seed differs', () => {
    const other = seed.slice()
    other[31]! ^= 1
    const [one, two] = [keysFromSeed(seed), keysFromSeed(other)]
    expect(toHex(one.publicKeys.mlDsa)).not.toBe(toHex(two.publicKeys.mlDsa))
    expect(toHex(one.publicKeys.slhDsa)).not.toBe(toHex(two.publicKeys.slhDsa))
  })

  it.each([0, 31, 33, 64])('are refused for a seed of %i bytes, and the error shows none of it', (length) => {
    expect(() => keysFromSeed(new Uint8Array(length).fill(0xab))).toThrow(
      expect.objectContaining({ code: 'malformed_key', message: `a wallet seed has 32 bytes, not ${length}` }),
    )
  })
})

describe('a key cache', () => {
  const key = (byte: number) => new Uint8Array(32).fill(byte)

  it('makes each key once and forgets the one that was used longest ago', () => {
    const made: number[] = []
    const cache = new KeyCache(2, (bytes) => {
      made.push(bytes[0]!)
      return { from: bytes[0]! }
    })
    const one = cache.get(key(1))
    cache.get(key(2))
    expect(cache.get(key(1))).toBe(one)
    cache.get(key(3))
    expect(cache.size).toBe(2)
    expect(cache.get(key(1))).toBe(one)
    cache.get(key(2))
    expect(made).toEqual([1, 2, 3, 2])
  })

  it('goes by the bytes and not by the buffer they stand in', () => {
    const cache = new KeyCache(8, (bytes) => bytes[0]!)
    const buffer = key(1)
    expect(cache.get(buffer)).toBe(1)
    buffer.fill(2)
    expect(cache.get(buffer)).toBe(2)
  })

  it('keeps nothing of a key that cannot be made', () => {
    const cache = new KeyCache(8, () => {
      throw new Error('not a key')
    })
    expect(() => cache.get(key(1))).toThrow('not a key')
    expect(cache.size).toBe(0)
  })
})
