import { beforeAll, describe, expect, it } from 'vitest'
import type { Id } from '../../../src/codec/index.js'
import { accountOf, encodeObject, objectHash, type Account, type LedgerObject } from '../../../src/ledger/index.js'
import { checkObject } from '../../../src/light/index.js'
import { StateTree, type StateProof } from '../../../src/merkle/index.js'
import { toHex } from '../../../src/codec/index.js'
import { refuses } from '../../support/refusals.js'
import { headerOf, signedChain, signedPulse, testId, type SignedChain, type SignedPulse } from '../../support/signed-chain.js'

let chain: SignedChain
let pulse: SignedPulse
let owner: Id
let objects: Map<Id, LedgerObject>

beforeAll(async () => {
  chain = signedChain([1])
  const keys = chain.keys[0]!.publicKeys
  owner = accountOf(keys)
  objects = new Map<Id, LedgerObject>([[owner, { kind: 'account', balance: 5n, dual: false, keys }]])
  for (let n = 0; n < 20; n++) objects.set(testId(`account ${n}`), { kind: 'account', balance: BigInt(n), dual: false })
  pulse = await signedPulse(chain, [], {}, 0, objects)
})

const bytesOf = (id: Id): Uint8Array => pulse.objects.get(id)!
const proofOf = (id: Id): StateProof => pulse.state.prove(id)

describe('an object', () => {
  it('is proven under the state root, each of them', () => {
    for (const [id, object] of objects) expect(checkObject(id, bytesOf(id), proofOf(id), pulse.header)).toEqual(object)
  })

  it('with another balance is not proven', async () => {
    const richer = encodeObject({ kind: 'account', balance: 1_000_000n, dual: false })
    await refuses('object_not_proven', () => checkObject(testId('account 1'), richer, proofOf(testId('account 1')), pulse.header))
  })

  it('of another id, with that one’s good proof, is not proven', async () => {
    const other = testId('account 2')
    await refuses('object_not_proven', () => checkObject(testId('account 1'), bytesOf(other), proofOf(other), pulse.header))
  })

  it('with a good proof against an old root is not proven under the new one', async () => {
    const id = testId('account 1')
    const next = pulse.state.update(new Map([[id, objectHash(encodeObject({ kind: 'account', balance: 0n, dual: false }))]]))
    const header = headerOf(chain, { number: 2, stateRoot: toHex(next.root) })
    await refuses('object_not_proven', () => checkObject(id, bytesOf(id), proofOf(id), header))
  })

  it('with a sibling missing, doubled or changed is not proven', async () => {
    const id = testId('account 1')
    const { siblings } = proofOf(id)
    for (const wrong of [siblings.slice(1), siblings.slice(0, -1), [siblings[0]!, ...siblings], [...siblings].reverse(), []]) {
      await refuses('object_not_proven', () => checkObject(id, bytesOf(id), { siblings: wrong }, pulse.header))
    }
  })

  it('whose recorded keys are not those of its id is refused, proven or not', async () => {
    const keys = chain.keys[0]!.publicKeys
    const thief: Account = { kind: 'account', balance: 5n, dual: false, keys }
    const id = testId('victim')
    const state = StateTree.empty.update(new Map([[id, objectHash(encodeObject(thief))]]))
    const header = headerOf(chain, { stateRoot: toHex(state.root) })
    await refuses('keys_not_of_id', () => checkObject(id, encodeObject(thief), state.prove(id), header))
  })

  it('of a kind that this version does not know is refused, though it is proven', async () => {
    const bytes = Uint8Array.of(250, 1, 2, 3)
    const id = testId('from the future')
    const state = StateTree.empty.update(new Map([[id, objectHash(bytes)]]))
    const header = headerOf(chain, { stateRoot: toHex(state.root) })
    await refuses('not_canonical', () => checkObject(id, bytes, state.prove(id), header))
  })
})

describe('the absence of an object', () => {
  it('is proven too, for many ids that are not there, and in an empty state', () => {
    for (let n = 0; n < 50; n++) {
      const id = testId(`absent ${n}`)
      expect(checkObject(id, undefined, proofOf(id), pulse.header)).toBeUndefined()
    }
    expect(checkObject(testId('x'), undefined, { siblings: [] }, headerOf(chain))).toBeUndefined()
  })

  it('is not shown by the key’s own proof, by an empty place over an occupied one, or by no proof at all', async () => {
    const id = testId('account 1')
    const { siblings } = proofOf(id)
    const valueHash = objectHash(bytesOf(id))
    for (const wrong of [{ siblings }, { siblings, leaf: { id, valueHash } }, { siblings: [] }]) {
      await refuses('object_not_proven', () => checkObject(id, undefined, wrong, pulse.header))
    }
  })

  it('is not shown by a leaf that is off its path', async () => {
    const id = testId('account 1')
    for (let n = 2; n < 20; n++) {
      const other = testId(`account ${n}`)
      const wrong = { siblings: proofOf(other).siblings, leaf: { id: other, valueHash: objectHash(bytesOf(other)) } }
      await refuses('object_not_proven', () => checkObject(id, undefined, wrong, pulse.header))
    }
  })
})
