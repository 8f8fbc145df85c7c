import { beforeAll, describe, expect, it } from 'vitest'
import { checkCertificate, checkFresh, checkHeader, checkHeaderTime, checkNoRegress, checkNumber, LightClientError } from '../../../src/light/index.js'
import { encodeHeader, ZERO_ID, type Header } from '../../../src/pulse/index.js'
import { refuses } from '../../support/refusals.js'
import { certificateOf, flipped, headerOf, signedChain, testId, type SignedChain } from '../../support/signed-chain.js'

let chain: SignedChain
let other: SignedChain
const good = async (): Promise<boolean> => true

beforeAll(() => {
  chain = signedChain([40, 30, 20, 10])
  other = signedChain([40, 30, 20, 10], 'other-chain')
})

const check = (overrides: Partial<Header>): unknown => checkHeader(encodeHeader(headerOf(chain, overrides)), chain.trust)

describe('a header', () => {
  it('of the trusted chain passes, for Pulse 1 and for a later one', () => {
    expect(checkHeader(encodeHeader(headerOf(chain)), chain.trust).header).toEqual(headerOf(chain))
    const later = headerOf(chain, { number: 7, parent: testId('six') })
    expect(checkHeader(encodeHeader(later), chain.trust).header).toEqual(later)
  })

  it('of another chain is refused', async () => {
    await refuses('wrong_chain', () => checkHeader(encodeHeader(headerOf(other)), chain.trust))
  })

  it('that names another validator set, configuration or epoch is refused, each by its own code', async () => {
    await refuses('wrong_validator_set', () => check({ validatorSetHash: other.trust.setHash }))
    await refuses('wrong_config', () => check({ configHash: ZERO_ID }))
    await refuses('wrong_epoch', () => check({ epoch: 1 }))
  })

  it('for Pulse 1 builds on the genesis, and Pulse 0 has none', async () => {
    await refuses('wrong_parent', () => check({ parent: ZERO_ID }))
    await refuses('wrong_number', () => check({ number: 0 }))
  })

  it('of another number than was asked for is refused', async () => {
    await refuses('wrong_number', () => checkNumber(headerOf(chain), 2))
    checkNumber(headerOf(chain), 1)
  })

  it('cut short or with bytes after it is not canonical', async () => {
    const bytes = encodeHeader(headerOf(chain))
    await refuses('not_canonical', () => checkHeader(bytes.subarray(1), chain.trust))
    await refuses('not_canonical', () => checkHeader(Uint8Array.of(...bytes, 0), chain.trust))
  })

  it('with any byte flipped is refused: by itself, or because the certificate is for another', async () => {
    const header = headerOf(chain)
    const bytes = encodeHeader(header)
    const votes = [0, 1].map((validator) => ({ validator, mlDsa: new Uint8Array(2420), slhDsa: new Uint8Array(17088) }))
    const certificate = certificateOf(header, votes)
    const codes = new Set<string>()
    for (let at = 0; at < bytes.length; at++) {
      try {
        const flippedHeader = checkHeader(flipped(bytes, at, 1 << (at % 8)), chain.trust).header
        await checkCertificate(flippedHeader, certificate, chain.trust, good)
        expect.fail(`accepted with byte ${at} flipped`)
      } catch (error) {
        if (!(error instanceof LightClientError)) throw error
        codes.add(error.code)
      }
    }
    expect([...codes].sort()).toEqual(
      ['not_canonical', 'wrong_chain', 'wrong_config', 'wrong_epoch', 'wrong_header', 'wrong_number', 'wrong_parent', 'wrong_validator_set'],
    )
  })
})

describe('the time of a header', () => {
  const now = 1_700_000_001_000

  it('may be ahead by as much as clocks drift, and not by a millisecond more', async () => {
    checkHeaderTime(headerOf(chain, { time: now + 10_000 }), now, 10_000)
    await refuses('header_from_future', () => checkHeaderTime(headerOf(chain, { time: now + 10_001 }), now, 10_000))
  })

  it('may be as old as what counts as fresh, and not a millisecond more', async () => {
    checkFresh(headerOf(chain, { time: now - 60_000 }), now, 60_000)
    await refuses('stale_header', () => checkFresh(headerOf(chain, { time: now - 60_001 }), now, 60_000))
  })

  it('never goes back: a Pulse before one already seen is stale as the newest', async () => {
    checkNoRegress(headerOf(chain, { number: 5 }), 5)
    await refuses('stale_header', () => checkNoRegress(headerOf(chain, { number: 5 }), 6))
  })
})
