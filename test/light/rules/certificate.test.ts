import * as fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { taggedHash } from '../../../src/crypto/hash.js'
import { inlineSignatures } from '../../../src/crypto/signatures.js'
import { checkCertificate, checkValidatorSet, LightClientError, type ProvenSet } from '../../../src/light/index.js'
import { encodeCertificate, headerHash, voteMessage, type Header, type Validator, type Vote } from '../../../src/pulse/index.js'
import { refuses } from '../../support/refusals.js'
import {
  certificateOf,
  flipped,
  headerOf,
  messageFor,
  rememberingVerify,
  signedChain,
  testId,
  voteOf,
  votesFor,
  type SignedChain,
} from '../../support/signed-chain.js'

const { verify } = rememberingVerify()
const good = async (): Promise<boolean> => true

let chain: SignedChain
let header: Header
/** Real votes of all four validators: 40, 30, 20 and 10 of the stake. */
let votes: [Vote, Vote, Vote, Vote]

beforeAll(async () => {
  chain = signedChain([40, 30, 20, 10])
  header = headerOf(chain)
  const [a, b, c, d] = await votesFor(chain, header, [0, 1, 2, 3])
  votes = [a!, b!, c!, d!]
})

const check = (changed: Vote[], of: Header = header): Promise<unknown> => checkCertificate(header, certificateOf(of, changed), chain.trust, verify)

describe('a good certificate', () => {
  it('passes with all votes, and says how much stake signed', async () => {
    expect(await check([...votes])).toEqual({ signed: 100n, quorum: 67n, total: 100n })
  })

  it('passes with two votes of 70, and with three of 70', async () => {
    expect(await check([votes[0], votes[1]])).toMatchObject({ signed: 70n })
    expect(await check([votes[0], votes[2], votes[3]])).toMatchObject({ signed: 70n })
  })
})

describe('too little stake', () => {
  it('three of four validators can be too few', async () => {
    await refuses('under_quorum', () => check([votes[1], votes[2], votes[3]]))
  })

  it('no vote at all is refused', async () => {
    await refuses('empty_certificate', () => check([]))
  })

  it('exactly two thirds is too little: totals 3, 4 and 6 need 3, 3 and 5', async () => {
    for (const [stakes, needed] of [[[1, 1, 1], 3], [[1, 1, 1, 1], 3], [[2, 2, 1, 1], 5]] as const) {
      const set = setOf(stakes)
      for (let voters = 1; voters <= stakes.length; voters++) {
        const signed = stakes.slice(0, voters).reduce<number>((sum, stake) => sum + stake, 0)
        const act = (): Promise<unknown> => checkCertificate(header, blankVotes(range(voters)), set, good)
        if (signed < needed) await refuses('under_quorum', act)
        else expect(await act()).toMatchObject({ signed: BigInt(signed) })
      }
    }
  })

  it('for any stakes and any voters: accepted if and only if three times what signed is more than twice the total', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 1_000_000 }), fc.boolean()), { minLength: 1, maxLength: 6 }),
        async (members) => {
          const set = setOf(members.map(([stake]) => stake))
          const places = range(members.length).filter((place) => members[place]![1])
          const signed = places.reduce((sum, place) => sum + members[place]![0], 0)
          const total = members.reduce((sum, [stake]) => sum + stake, 0)
          const accepted = await checkCertificate(header, blankVotes(places), set, good).then(
            () => true,
            (error: unknown) => {
              expect(error).toBeInstanceOf(LightClientError)
              return false
            },
          )
          expect(accepted).toBe(3 * signed > 2 * total)
        },
      ),
    )
  })
})

describe('who votes', () => {
  it('one validator twice is refused, though all its signatures are good', async () => {
    await refuses('duplicate_signer', () => check([votes[0], votes[0]]))
    await refuses('duplicate_signer', () => check([votes[0], votes[1], votes[1]]))
  })

  it('one validator’s vote under another’s place does not verify there', async () => {
    await refuses('bad_signature', () => check([votes[0], { ...votes[0], validator: 1 }]))
  })

  it('a place outside the set is refused', async () => {
    await refuses('unknown_signer', () => check([...votes, { ...votes[3], validator: 4 }]))
    await refuses('unknown_signer', () => check([{ ...votes[0], validator: 65_535 }]))
  })

  it('a validator of no set votes in nobody’s place', async () => {
    const stranger = signedChain([1], 'stranger')
    const vote = await voteOf(stranger, 0, messageFor(header))
    await refuses('bad_signature', () => check([vote, votes[1]]))
  })

  it('votes out of order are a second encoding of the same certificate', async () => {
    await refuses('votes_out_of_order', () => check([votes[1], votes[0]]))
    await refuses('duplicate_signer', () => check([votes[0], votes[1], votes[0]]))
  })
})

describe('what was signed', () => {
  it('a certificate for another header, Pulse or epoch is refused', async () => {
    await refuses('wrong_header', () => check([...votes], { ...header, round: 2 }))
    await refuses('wrong_number', () => check([...votes], { ...header, number: 2 }))
    await refuses('wrong_epoch', () => check([...votes], { ...header, epoch: 1 }))
  })

  it('good votes for another header, Pulse, epoch or chain, put under this one, do not verify', async () => {
    const { chain: id, epoch, number } = header
    const hash = headerHash(header)
    const others = [
      voteMessage({ chain: id, epoch, number, headerHash: headerHash({ ...header, round: 2 }) }),
      voteMessage({ chain: id, epoch, number: 2, headerHash: hash }),
      voteMessage({ chain: id, epoch: 1, number, headerHash: hash }),
      voteMessage({ chain: testId('another chain'), epoch, number, headerHash: hash }),
    ]
    for (const message of others) {
      // The lattice signature alone shows it: it is checked first, and a tenth of the price to make.
      const vote = { ...votes[0], mlDsa: await inlineSignatures.sign('ml-dsa-44', chain.keys[0]!, message) }
      await refuses('bad_signature', () => check([vote, votes[1]]))
    }
  })

  it('a signature in another role does not count: the same fields under another tag, or the bare hash', async () => {
    const hash = new Uint8Array(Buffer.from(headerHash(header), 'hex'))
    for (const message of [taggedHash('sion/lane-vote/v1', hash), hash]) {
      const vote = { ...votes[0], mlDsa: await inlineSignatures.sign('ml-dsa-44', chain.keys[0]!, message) }
      await refuses('bad_signature', () => check([vote, votes[1]]))
    }
  })
})

describe('two signatures each', () => {
  const zero = { mlDsa: new Uint8Array(2420), slhDsa: new Uint8Array(17088) }

  it('a vote with one good and one bad signature is refused, whichever is bad', async () => {
    for (const at of [0, 1200, 2419]) {
      await refuses('bad_signature', () => check([{ ...votes[0], mlDsa: flipped(votes[0].mlDsa, at) }, votes[1]]))
    }
    for (const at of [0, 9000, 17087]) {
      await refuses('bad_signature', () => check([{ ...votes[0], slhDsa: flipped(votes[0].slhDsa, at) }, votes[1]]))
    }
  })

  it('a vote with one algorithm only is refused, whether the other is zero or left out', async () => {
    await refuses('bad_signature', () => check([{ ...votes[0], slhDsa: zero.slhDsa }, votes[1]]))
    await refuses('bad_signature', () => check([{ ...votes[0], mlDsa: zero.mlDsa }, votes[1]]))
    const whole = certificateOf(header, [votes[0], votes[1]])
    await refuses('not_canonical', () => checkCertificate(header, whole.subarray(0, -17088), chain.trust, verify))
  })

  it('the two of different validators make no vote', async () => {
    await refuses('bad_signature', () => check([{ ...votes[0], slhDsa: votes[1].slhDsa }, votes[1]]))
  })

  it('one bad signature beyond a quorum of good ones is refused too', async () => {
    await refuses('bad_signature', () => check([votes[0], votes[1], votes[2], { ...votes[3], slhDsa: flipped(votes[3].slhDsa, 20) }]))
    await refuses('bad_signature', () => check([votes[0], votes[1], { ...votes[2], mlDsa: flipped(votes[2].mlDsa, 20) }]))
  })

  it('is told which validator and which algorithm it was', async () => {
    const error = await refuses('bad_signature', () => check([votes[0], { ...votes[1], slhDsa: zero.slhDsa }]))
    expect(error.message).toMatch(/SLH-DSA-SHA2-128f signature of validator 1/)
  })
})

describe('its bytes', () => {
  it('cut short, or with something after them, are not canonical', async () => {
    const bytes = certificateOf(header, [...votes])
    for (const wrong of [bytes.subarray(0, -1), Uint8Array.of(...bytes, 0), new Uint8Array(0), bytes.subarray(1)]) {
      await refuses('not_canonical', () => checkCertificate(header, wrong, chain.trust, verify))
    }
  })

  it('with a list that says one vote more or less than there are, are not canonical', async () => {
    const bytes = certificateOf(header, [votes[0], votes[1]])
    const lengthAt = bytes.length - 2 * (2 + 2420 + 17088) - 1
    expect(bytes[lengthAt]).toBe(2)
    for (const mask of [1, 3]) {
      await refuses('not_canonical', () => checkCertificate(header, flipped(bytes, lengthAt, mask), chain.trust, verify))
    }
  })

  it('are checked for all that is free before the first signature is', async () => {
    let verified = 0
    const counting = async (): Promise<boolean> => {
      verified++
      return true
    }
    await refuses('under_quorum', () => checkCertificate(header, certificateOf(header, [votes[1]]), chain.trust, counting))
    await refuses('duplicate_signer', () => checkCertificate(header, certificateOf(header, [votes[0], votes[0]]), chain.trust, counting))
    expect(verified).toBe(0)
    await checkCertificate(header, certificateOf(header, [...votes]), chain.trust, counting)
    expect(verified).toBe(8)
  })
})

it('what verifies being broken is thrown as it is, not taken for a bad signature', async () => {
  const broken = async (): Promise<boolean> => {
    throw new Error('the pool is closed')
  }
  await expect(checkCertificate(header, certificateOf(header, [...votes]), chain.trust, broken)).rejects.toThrow('the pool is closed')
})

const range = (length: number): number[] => Array.from({ length }, (_, at) => at)

/** Votes without signatures, for `verify` that says yes: only their stake matters. */
function blankVotes(places: number[]): Uint8Array {
  const blank = { mlDsa: new Uint8Array(2420), slhDsa: new Uint8Array(17088) }
  return encodeCertificate({ epoch: 0, number: 1, headerHash: headerHash(header), votes: places.map((validator) => ({ validator, ...blank })) })
}

function setOf(stakes: readonly number[]): ProvenSet {
  const validators: Validator[] = stakes.map((stake, place) => ({
    keys: { mlDsa: new Uint8Array(1312).fill(place), slhDsa: new Uint8Array(32).fill(place) },
    stake: BigInt(stake),
  }))
  return checkValidatorSet(validators, 0)
}
