import { beforeAll, describe, expect, it } from 'vitest'
import { checkGenesis, checkValidatorSet } from '../../../src/light/index.js'
import { encodeGenesis, quorumOf, type Genesis } from '../../../src/pulse/index.js'
import { refuses } from '../../support/refusals.js'
import { flipped, signedChain, type SignedChain } from '../../support/signed-chain.js'

let chain: SignedChain
let pinned: string

beforeAll(() => {
  chain = signedChain([40, 30, 20, 10])
  pinned = chain.trust.chain
})

describe('the genesis', () => {
  it('is trusted when it hashes to the pinned chain, and says what the quorum is', () => {
    const trust = checkGenesis(chain.genesisBytes, pinned)
    expect(trust).toMatchObject({ chain: pinned, pinned: true, epoch: 0, total: 100n, quorum: 67n })
  })

  it('without a pinned chain is the node’s word, and says so', () => {
    expect(checkGenesis(chain.genesisBytes, undefined).pinned).toBe(false)
  })

  it('of another chain is refused, though it differs in its salt alone', async () => {
    const other = encodeGenesis({ ...chain.genesis, salt: 'ff112233445566778899aabbccddeeff' })
    await refuses('wrong_chain', () => checkGenesis(other, pinned))
  })

  it('with one byte of a validator’s key changed is that of another chain: no key can stand under a foreign id', async () => {
    const [first, ...rest] = chain.genesis.validators
    const keys = { mlDsa: flipped(first!.keys.mlDsa, 100), slhDsa: first!.keys.slhDsa }
    const forged: Genesis = { ...chain.genesis, validators: [{ ...first!, keys }, ...rest] }
    await refuses('wrong_chain', () => checkGenesis(encodeGenesis(forged), pinned))
  })

  it('with more stake for one validator, or another order of them, is that of another chain', async () => {
    const [first, second, ...rest] = chain.genesis.validators
    const richer: Genesis = { ...chain.genesis, validators: [{ ...first!, stake: 90n }, second!, ...rest] }
    await refuses('wrong_chain', () => checkGenesis(encodeGenesis(richer), pinned))
    const reordered: Genesis = { ...chain.genesis, validators: [second!, first!, ...rest] }
    await refuses('wrong_chain', () => checkGenesis(encodeGenesis(reordered), pinned))
  })

  it('with any single byte flipped is refused', () => {
    for (let at = 0; at < chain.genesisBytes.length; at += 7) {
      expect(() => checkGenesis(flipped(chain.genesisBytes, at), pinned)).toThrow(
        expect.objectContaining({ name: 'LightClientError' }),
      )
    }
  })

  it('cut short or with bytes after it is not canonical', async () => {
    await refuses('not_canonical', () => checkGenesis(chain.genesisBytes.subarray(0, -1), pinned))
    await refuses('not_canonical', () => checkGenesis(Uint8Array.of(...chain.genesisBytes, 0), pinned))
    await refuses('not_canonical', () => checkGenesis(new Uint8Array(0), pinned))
  })
})

describe('a validator set', () => {
  it('that is empty, or has a member without stake, is none', async () => {
    await refuses('bad_validator_set', () => checkValidatorSet([], 0))
    const [first, ...rest] = chain.genesis.validators
    await refuses('bad_validator_set', () => checkValidatorSet([{ ...first!, stake: 0n }, ...rest], 0))
  })

  it('that lists a key twice would count its stake twice: either of the two keys is enough to refuse it', async () => {
    const [first, second] = chain.genesis.validators
    await refuses('bad_validator_set', () => checkValidatorSet([first!, first!], 0))
    const sameLattice = { ...second!, keys: { mlDsa: first!.keys.mlDsa, slhDsa: second!.keys.slhDsa } }
    await refuses('bad_validator_set', () => checkValidatorSet([first!, sameLattice], 0))
    const sameHashes = { ...second!, keys: { mlDsa: second!.keys.mlDsa, slhDsa: first!.keys.slhDsa } }
    await refuses('bad_validator_set', () => checkValidatorSet([first!, sameHashes], 0))
  })

  it('needs strictly more than two thirds: 3 of 3, 3 of 4, 5 of 6, 67 of 100, 266,667 of 400,000', () => {
    expect([3n, 4n, 6n, 100n, 400_000n].map(quorumOf)).toEqual([3n, 3n, 5n, 67n, 266_667n])
  })
})
