import { describe, expect, it } from 'vitest'
import { isId } from '../../src/codec/index.js'
import { configHash, DEFAULT_PARAMETERS } from '../../src/ledger/index.js'
import { chainOf, decodeGenesis, encodeGenesis, genesisHash, networkOf, type Genesis } from '../../src/pulse/index.js'
import { keysOf, sampleGenesis } from './sample.js'

const [first, second] = sampleGenesis.validators
const [alice, bob] = sampleGenesis.balances
if (first === undefined || second === undefined || alice === undefined || bob === undefined) throw new Error('the sample has two of each')

describe('a chain’s identity', () => {
  it('follows from the genesis and is not its hash', () => {
    expect(isId(chainOf(sampleGenesis))).toBe(true)
    expect(chainOf(decodeGenesis(encodeGenesis(sampleGenesis)))).toBe(chainOf(sampleGenesis))
    expect(chainOf(sampleGenesis)).not.toBe(genesisHash(sampleGenesis))
  })

  it.each<[string, Partial<Genesis>]>([
    ['name', { name: 'sion-devnet-2' }],
    ['salt', { salt: '00112233445566778899aabbccddeefe' }],
    ['time', { time: sampleGenesis.time + 1 }],
    ['ML-DSA-44 key of a validator', { validators: [{ ...first, keys: { ...first.keys, mlDsa: keysOf(9).mlDsa } }, second] }],
    ['SLH-DSA key of a validator', { validators: [{ ...first, keys: { ...first.keys, slhDsa: keysOf(9).slhDsa } }, second] }],
    ['stake', { validators: [{ ...first, stake: first.stake + 1n }, second] }],
    ['number of validators', { validators: [first] }],
    ['order of validators', { validators: [second, first] }],
    ['base fee', { parameters: { ...DEFAULT_PARAMETERS, feeBase: 1_001n } }],
    ['fee for an object touched', { parameters: { ...DEFAULT_PARAMETERS, feeTouched: 101n } }],
    ['fee for an object created', { parameters: { ...DEFAULT_PARAMETERS, feeCreated: 101n } }],
    ['balance', { balances: [[alice[0], alice[1] + 1n], bob] }],
    ['owner of a balance', { balances: [['ab'.repeat(32), alice[1]], bob] }],
    ['number of balances', { balances: [alice] }],
  ])('is another one under another %s', (_, change) => {
    const other = { ...sampleGenesis, ...change }
    expect(genesisHash(other)).not.toBe(genesisHash(sampleGenesis))
    expect(chainOf(other)).not.toBe(chainOf(sampleGenesis))
  })

  it('names the x402 network by its first 16 bytes', () => {
    const chain = '94425d7211b21492c4a9147ba3b67dc0' + 'ab'.repeat(16)
    expect(networkOf(chain)).toBe('sion:94425d7211b21492c4a9147ba3b67dc0')
    expect(networkOf(chainOf(sampleGenesis))).toMatch(/^sion:[0-9a-f]{32}$/)
  })
})

describe('the configuration hash', () => {
  it('is another one under any other parameter, and keeps them apart', () => {
    const variants = [
      DEFAULT_PARAMETERS,
      { ...DEFAULT_PARAMETERS, feeBase: 100n },
      { ...DEFAULT_PARAMETERS, feeTouched: 1_000n },
      { ...DEFAULT_PARAMETERS, feeCreated: 1_000n },
    ]
    expect(new Set(variants.map(configHash)).size).toBe(variants.length)
  })
})
