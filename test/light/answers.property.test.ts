import * as fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { SionError } from '../../src/codec/index.js'
import { accountOf, type LedgerObject } from '../../src/ledger/index.js'
import { createLightClient, type LightClient } from '../../src/light/index.js'
import { answersOf, rememberingVerify, signedChain, signedPulse, testId, type Json, type SignedChain, type SignedPulse } from '../support/signed-chain.js'

/**
 * Whatever a node answers, nothing false is accepted and nothing but our own errors is thrown: every answer of an honest
 * node is changed somewhere at random, and then the client either refuses it or says exactly what it says without the change.
 */

const verifier = rememberingVerify()
const absent = testId('nobody')
let chain: SignedChain
let pulse: SignedPulse
let account: string
let honest: Map<string, Json>

beforeAll(async () => {
  chain = signedChain([40, 30, 20, 10])
  const keys = chain.keys[0]!.publicKeys
  account = accountOf(keys)
  const objects = new Map<string, LedgerObject>([[account, { kind: 'account', balance: 7n, dual: false, keys }]])
  for (let n = 0; n < 8; n++) objects.set(testId(`account ${n}`), { kind: 'account', balance: BigInt(n), dual: false })
  pulse = await signedPulse(chain, [0, 1, 2], {}, 5, objects)
  honest = answersOf(chain, [pulse])
})

const questions: [name: string, path: () => string, ask: (client: LightClient) => Promise<unknown>][] = [
  ['the genesis', () => '/v1/genesis', (client) => client.latest()],
  ['the newest Pulse', () => '/v1/pulses/latest', (client) => client.latest()],
  ['a Pulse', () => '/v1/pulses/1', (client) => client.header(1)],
  ['a receipt', () => `/v1/receipts/${pulse.receipts[3]!.receipt.digest}`, (client) => client.receipt(pulse.receipts[3]!.receipt.digest)],
  ['an object', () => `/v1/objects/${account}`, (client) => client.object(account)],
  ['an absence', () => `/v1/objects/${absent}`, (client) => client.object(absent)],
  ['a body', () => `/v1/transactions/${pulse.receipts[0]!.receipt.digest}`, (client) => client.body(pulse.receipts[0]!.receipt.digest)],
]

function clientOf(answers: Map<string, Json>): LightClient {
  return createLightClient({
    chain: chain.trust.chain,
    signatures: verifier,
    now: () => pulse.header.time,
    transport: {
      get: async (path) => ({ status: answers.has(path) ? 200 : 404, body: structuredClone(answers.get(path)) }),
      post: async () => ({ status: 404, body: null }),
    },
  })
}

/** What the client makes of it: an answer, or the code it refuses with. Any other error fails the test. */
async function outcomeOf(ask: Promise<unknown>): Promise<{ answer: unknown } | { code: string }> {
  try {
    return { answer: await ask }
  } catch (error) {
    if (error instanceof SionError) return { code: error.code }
    throw error
  }
}

/** Where to change an answer, and how. */
interface Change {
  readonly where: number
  readonly how: 'character' | 'cut' | 'grow' | 'drop' | 'replace' | 'number' | 'swap'
  readonly at: number
  readonly value: Json
}

const change: fc.Arbitrary<Change> = fc.record({
  where: fc.nat(),
  how: fc.constantFrom('character', 'character', 'character', 'cut', 'grow', 'drop', 'replace', 'number', 'swap'),
  at: fc.nat(),
  value: fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
})

interface Place {
  readonly holder: Json[] | { [name: string]: Json }
  readonly key: string
}

function placesIn(json: Json, found: Place[] = []): Place[] {
  if (typeof json !== 'object' || json === null) return found
  for (const key of Object.keys(json)) {
    found.push({ holder: json, key })
    placesIn((json as { [name: string]: Json })[key]!, found)
  }
  return found
}

function changed(answer: Json, { where, how, at, value }: Change): Json {
  const copy = structuredClone(answer)
  const places = placesIn(copy)
  const { holder, key } = places[where % places.length]!
  const slot = holder as { [name: string]: Json }
  const old = slot[key]!
  if (how === 'drop') delete slot[key]
  else if (how === 'replace') slot[key] = value
  else if (how === 'swap') slot[key] = slot[places[at % places.length]!.key] ?? null
  else if (typeof old === 'number') slot[key] = how === 'number' ? at : how === 'cut' ? -old : old + 1
  else if (typeof old === 'string') slot[key] = changedText(old, how, at)
  else if (Array.isArray(old)) slot[key] = how === 'grow' ? [...old, old[0] ?? ''] : old.slice(1)
  return copy
}

function changedText(text: string, how: Change['how'], at: number): string {
  if (how === 'cut') return text.slice(0, at % (text.length + 1))
  if (how === 'grow') return `${text}${text.slice(0, at % (text.length + 1))}`
  if (text === '') return 'A'
  const place = at % text.length
  const alphabet = '0123456789abcdefABCDEF+/='
  return text.slice(0, place) + alphabet[at % alphabet.length]! + text.slice(place + 1)
}

describe('an answer changed at random is refused, or changes nothing', () => {
  for (const [name, path, ask] of questions) {
    it(name, async () => {
      const truth = await ask(clientOf(honest))
      const codes = new Set<string>()
      await fc.assert(
        fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
          const answer = changes.reduce<Json>((json, one) => (placesIn(json).length === 0 ? json : changed(json, one)), honest.get(path())!)
          const outcome = await outcomeOf(ask(clientOf(new Map(honest).set(path(), answer))))
          if ('answer' in outcome) expect(outcome.answer).toEqual(truth)
          else codes.add(outcome.code)
        }),
        { numRuns: 150 },
      )
      expect(codes.size).toBeGreaterThan(0)
    })

    it(`${name}: any JSON at all in its place`, async () => {
      await fc.assert(
        fc.asyncProperty(fc.jsonValue() as fc.Arbitrary<Json>, async (answer) => {
          expect(await outcomeOf(ask(clientOf(new Map(honest).set(path(), answer))))).toHaveProperty('code')
        }),
        { numRuns: 150 },
      )
    })
  }
})

it('every single bit of a header, a receipt, an object and a proof matters', async () => {
  for (const [, path, ask] of questions.slice(2, 5)) {
    const answer = honest.get(path())!
    const texts = placesIn(structuredClone(answer)).filter(({ holder, key }) => key !== 'certificate' && typeof (holder as { [name: string]: Json })[key] === 'string')
    for (let where = 0; where < texts.length; where++) {
      const copy = structuredClone(answer)
      const { holder, key } = placesIn(copy).filter(({ holder, key }) => key !== 'certificate' && typeof (holder as { [name: string]: Json })[key] === 'string')[where]!
      const slot = holder as { [name: string]: Json }
      const text = slot[key] as string
      for (let at = 0; at < text.length; at += 5) {
        const other = text[at] === 'a' ? 'b' : 'a'
        slot[key] = text.slice(0, at) + other + text.slice(at + 1)
        expect(await outcomeOf(ask(clientOf(new Map(honest).set(path(), copy))))).toHaveProperty('code')
      }
    }
  }
})
