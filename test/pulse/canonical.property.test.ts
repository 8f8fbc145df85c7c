import { describe, expect, it } from 'vitest'
import { InputError, MAX_AMOUNT, unpack } from '../../src/codec/index.js'
import { DEFAULT_PARAMETERS } from '../../src/ledger/index.js'
import {
  decodeCertificate,
  decodeGenesis,
  decodeHeader,
  encodeCertificate,
  encodeGenesis,
  encodeHeader,
  validators,
  type Certificate,
  type Genesis,
} from '../../src/pulse/index.js'
import * as arbitrary from '../support/arbitraries.js'
import { describeBytes, expectCanonical, expectEveryChangeCanonical, expectRoundTrip, type Canonical } from '../support/canonical.js'
import { sampleHeader } from './sample.js'

const headers = { encode: encodeHeader, decode: decodeHeader }
const geneses: Canonical<Genesis> = { encode: encodeGenesis, decode: decodeGenesis }
const certificates: Canonical<Certificate> = { encode: encodeCertificate, decode: decodeCertificate }

describeBytes('a header', headers, arbitrary.header)
describeBytes('a genesis', geneses, arbitrary.genesis)
describeBytes('a certificate', certificates, arbitrary.certificate)

describe('every bit of', () => {
  it('a header counts', () => {
    expectEveryChangeCanonical(headers, encodeHeader(sampleHeader))
  })

  it('a certificate’s frame counts', () => {
    const bytes = encodeCertificate({ epoch: 0, number: 9, headerHash: 'ab'.repeat(32), votes: [] })
    expectEveryChangeCanonical(certificates, bytes)
    const vote = { validator: 3, mlDsa: new Uint8Array(2_420), slhDsa: new Uint8Array(17_088) }
    const one = encodeCertificate({ epoch: 0, number: 9, headerHash: 'ab'.repeat(32), votes: [vote] })
    expect(one.length - bytes.length).toBe(2 + 2_420 + 17_088)
    for (const cut of [1, 17_088, one.length - bytes.length]) expect(expectCanonical(certificates, one.slice(0, -cut))).toBe('refused')
  })

  it('a genesis counts', () => {
    const genesis: Genesis = { name: 'é', salt: '0f'.repeat(16), time: 1, validators: [], parameters: DEFAULT_PARAMETERS, balances: [['ab'.repeat(32), 5n]] }
    expectEveryChangeCanonical(geneses, encodeGenesis(genesis))
  })
})

describe('a genesis', () => {
  const holding = (...balances: [string, bigint][]): Genesis => ({
    name: 'test',
    salt: '00'.repeat(16),
    time: 0,
    validators: [],
    parameters: DEFAULT_PARAMETERS,
    balances,
  })
  const [alice, bob] = ['aa'.repeat(32), 'bb'.repeat(32)]

  it('holds at most 2^53 − 1 micro-USD in all, so that no balance can ever outgrow its bytes', () => {
    expectRoundTrip(geneses, holding([alice, MAX_AMOUNT]))
    expectRoundTrip(geneses, holding([alice, MAX_AMOUNT - 1n], [bob, 1n]))
    expect(() => encodeGenesis(holding([alice, MAX_AMOUNT], [bob, 1n]))).toThrow(`balances of ${MAX_AMOUNT + 1n} together, over ${MAX_AMOUNT}`)
    const bytes = encodeGenesis(holding([alice, MAX_AMOUNT], [bob, 0n]))
    expect(() => decodeGenesis(bytes.with(bytes.length - 1, 1))).toThrow(InputError)
  })

  it('names each account once: with two balances it would be anybody’s guess which counts', () => {
    expect(() => encodeGenesis(holding([alice, 1n], [alice, 1n]))).toThrow('an account with two balances')
    const bytes = encodeGenesis(holding([alice, 1n], ['ab'.repeat(32), 1n]))
    for (let at = bytes.length - 40; at < bytes.length - 8; at++) bytes[at] = 0xaa
    expect(() => decodeGenesis(bytes)).toThrow('an account with two balances')
  })

  it('holds at most 256 validators and 4,096 balances', () => {
    const keys = { mlDsa: new Uint8Array(1_312), slhDsa: new Uint8Array(32) }
    const set = (length: number) => Array.from({ length }, () => ({ keys, stake: 1n }))
    expect(unpack(validators, validators.encode(set(256)), 'validators')).toHaveLength(256)
    expect(() => validators.encode(set(257))).toThrow('list of 257 is over 256')
    const accounts = (length: number) => Array.from({ length }, (_, at): [string, bigint] => [at.toString(16).padStart(64, '0'), 1n])
    expect(decodeGenesis(encodeGenesis(holding(...accounts(4_096)))).balances).toHaveLength(4_096)
    expect(() => encodeGenesis(holding(...accounts(4_097)))).toThrow('list of 4097 is over 4096')
  })

  it('has a name of at most 64 printable bytes', () => {
    expectRoundTrip(geneses, { ...holding(), name: 'é'.repeat(32) })
    for (const name of ['x'.repeat(65), 'a\n', '\u202e']) expect(() => encodeGenesis({ ...holding(), name })).toThrow()
  })
})
