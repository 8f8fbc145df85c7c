import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { fromHex } from '../../src/codec/index.js'
import { decodeBody, decodeObject, decodeReceipt, digestOf, encodeBody, encodeObject, encodeReceipt } from '../../src/ledger/index.js'
import { decodeCertificate, decodeGenesis, decodeHeader, encodeCertificate, encodeGenesis, encodeHeader } from '../../src/pulse/index.js'
import { bytesOfTheProtocol, hashesOfTheProtocol } from './protocol-values.js'

interface Vectors {
  note: string
  bytes: Record<string, string>
  hashes: Record<string, string>
}

const vectors = JSON.parse(readFileSync(new URL('../vectors/protocol.json', import.meta.url), 'utf8')) as Vectors
const bytesOf = (name: string): Uint8Array => fromHex(vectors.bytes[name], name)

/** H(tag, bytes) of docs/protocol.md §1, written a second time. */
function taggedHash(tag: string, ...parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256').update(Uint8Array.of(tag.length)).update(tag, 'ascii')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

let hashes: Record<string, string>
beforeAll(async () => {
  hashes = await hashesOfTheProtocol()
})

describe('the protocol’s own vectors', () => {
  it('are all here, and none is left over', () => {
    expect(Object.keys(vectors.bytes)).toEqual(Object.keys(bytesOfTheProtocol()))
    expect(Object.keys(vectors.hashes)).toEqual(Object.keys(hashes))
    expect(Object.keys(vectors.bytes)).toHaveLength(21)
    expect(Object.keys(vectors.hashes)).toHaveLength(28)
  })

  it.each(Object.keys(vectors.bytes))('fix the bytes of %s', (name) => {
    expect(bytesOfTheProtocol()[name]).toBe(vectors.bytes[name])
  })

  it.each(Object.keys(vectors.hashes))('fix %s', (name) => {
    expect(hashes[name]).toBe(vectors.hashes[name])
  })

  it('differ from each other', () => {
    const all = [...Object.values(vectors.bytes), ...Object.values(vectors.hashes)]
    expect(new Set(all).size).toBe(all.length)
  })

  it.each(Object.keys(vectors.bytes).filter((name) => name !== 'parameters'))('read back: %s', (name) => {
    const bytes = bytesOf(name)
    const again = name.startsWith('body')
      ? encodeBody(decodeBody(bytes))
      : name.startsWith('object')
        ? encodeObject(decodeObject(bytes))
        : name.startsWith('receipt')
          ? encodeReceipt(decodeReceipt(bytes))
          : name === 'header'
            ? encodeHeader(decodeHeader(bytes))
            : name.startsWith('certificate')
              ? encodeCertificate(decodeCertificate(bytes))
              : encodeGenesis(decodeGenesis(bytes))
    expect(again).toEqual(bytes)
  })

  it('are what the protocol’s page says: SHA-256 over the tag’s length, the tag and the bytes', () => {
    for (const name of Object.keys(vectors.bytes).filter((each) => each.startsWith('body: '))) {
      const digest = taggedHash('sion/tx/v1', bytesOf(name))
      expect(vectors.hashes[name.replace('body', 'digest')]).toBe(digest)
      expect(digestOf(decodeBody(bytesOf(name)))).toBe(digest)
    }
    const hash = (name: string): Uint8Array => fromHex(vectors.hashes[name], name, 32)
    expect(vectors.hashes['header hash']).toBe(taggedHash('sion/header/v1', bytesOf('header')))
    expect(vectors.hashes['configuration hash']).toBe(taggedHash('sion/config/v1', bytesOf('parameters')))
    expect(vectors.hashes['chain']).toBe(taggedHash('sion/chain/v1', hash('genesis hash')))
    expect(vectors.hashes['network']).toBe(`sion:${vectors.hashes['chain']?.slice(0, 32)}`)
    expect(vectors.hashes['stream']).toBe(taggedHash('sion/stream/v1', hash('digest: openStream')))
    expect(vectors.hashes['treasury']).toBe(taggedHash('sion/treasury/v1'))
    expect(vectors.hashes['asset USD']).toBe(taggedHash('sion/asset/v1', Buffer.from('USD')))
    expect(vectors.hashes['seed of the devnet wallet dana']).toBe(taggedHash('sion/devnet-wallet/v1', Buffer.from('dana')))
    // The certificate without votes is epoch, number, header hash and an empty list: what is voted on stands at its front.
    const header = bytesOf('header')
    const message = taggedHash('sion/pulse-vote/v1', header.subarray(0, 32), bytesOf('certificate without votes').subarray(0, 48))
    expect(vectors.hashes['vote message']).toBe(message)
  })
})
