import { fromHex, toBase64, toHex, type Id } from '../../src/codec/index.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { keysFromSeed, type DualKeys } from '../../src/crypto/keys.js'
import { inlineSignatures, type Signatures } from '../../src/crypto/signatures.js'
import {
  configHash,
  DEFAULT_PARAMETERS,
  digestOf,
  encodeBody,
  encodeObject,
  encodeReceipt,
  objectHash,
  USD,
  type Body,
  type LedgerObject,
  type Receipt,
} from '../../src/ledger/index.js'
import { checkGenesis, type Trust } from '../../src/light/index.js'
import { EMPTY_LOG_ROOT, encodePath, encodeStateProof, leafHash, LogTree, StateTree } from '../../src/merkle/index.js'
import {
  encodeCertificate,
  encodeGenesis,
  encodeHeader,
  headerHash,
  voteMessage,
  ZERO_ID,
  type Genesis,
  type Header,
  type Vote,
} from '../../src/pulse/index.js'

/** A chain whose validators sign for real, built by hand: no node, so that a test can have them sign anything. */
export interface SignedChain {
  readonly genesis: Genesis
  readonly genesisBytes: Uint8Array
  readonly keys: readonly DualKeys[]
  readonly trust: Trust
}

export function signedChain(stakes: readonly number[], name = 'test-chain'): SignedChain {
  const keys = stakes.map((_, place) => keysFromSeed(taggedHash(`test/validator-${name}-${place}`)))
  const genesis: Genesis = {
    name,
    salt: '00112233445566778899aabbccddeeff',
    time: 1_700_000_000_000,
    validators: stakes.map((stake, place) => ({ keys: keys[place]!.publicKeys, stake: BigInt(stake) })),
    parameters: DEFAULT_PARAMETERS,
    balances: [],
  }
  const genesisBytes = encodeGenesis(genesis)
  const { chain } = checkGenesis(genesisBytes, undefined)
  return { genesis, genesisBytes, keys, trust: checkGenesis(genesisBytes, chain) }
}

/** A header that the chain's rules allow, apart from what is overridden. */
export function headerOf({ trust }: SignedChain, overrides: Partial<Header> = {}): Header {
  return {
    chain: trust.chain,
    epoch: 0,
    number: 1,
    round: 1,
    parent: trust.genesisHash,
    time: 1_700_000_001_000,
    beacon: ZERO_ID,
    stateRoot: ZERO_ID,
    knowledgeRoot: toHex(EMPTY_LOG_ROOT),
    knowledgeSize: 0,
    receiptsRoot: toHex(EMPTY_LOG_ROOT),
    receiptCount: 0,
    dataRoot: ZERO_ID,
    laneRoot: ZERO_ID,
    forcedPending: 0,
    forcedOverdue: 0,
    configHash: configHash(DEFAULT_PARAMETERS),
    validatorSetHash: trust.setHash,
    ...overrides,
  }
}

/** Both signatures of the validator at `place` over whatever `message` is. A quarter of a second on Node 20. */
export async function voteOf({ keys }: SignedChain, place: number, message: Uint8Array): Promise<Vote> {
  return {
    validator: place,
    mlDsa: await inlineSignatures.sign('ml-dsa-44', keys[place]!, message),
    slhDsa: await inlineSignatures.sign('slh-dsa-sha2-128f', keys[place]!, message),
  }
}

export function messageFor(header: Header): Uint8Array {
  const { chain, epoch, number } = header
  return voteMessage({ chain, epoch, number, headerHash: headerHash(header) })
}

/** The votes of `places` for `header`, which need not be a good one. */
export async function votesFor(chain: SignedChain, header: Header, places: readonly number[]): Promise<Vote[]> {
  const votes: Vote[] = []
  for (const place of places) votes.push(await voteOf(chain, place, messageFor(header)))
  return votes
}

export function certificateOf({ epoch, number, ...rest }: Header, votes: Vote[]): Uint8Array {
  return encodeCertificate({ epoch, number, headerHash: headerHash({ epoch, number, ...rest }), votes })
}

export interface SignedPulse {
  readonly header: Header
  readonly hash: Id
  readonly certificate: Uint8Array
  readonly receipts: readonly { receipt: Receipt; bytes: Uint8Array; body: Body }[]
  readonly receiptLog: LogTree
  readonly objects: ReadonlyMap<Id, Uint8Array>
  readonly state: StateTree
}

/** A certified Pulse with `payments` transfers in it and `objects` as its state. */
export async function signedPulse(
  chain: SignedChain,
  places: readonly number[],
  overrides: Partial<Header>,
  payments: number,
  objects: ReadonlyMap<Id, LedgerObject>,
): Promise<SignedPulse> {
  const number = overrides.number ?? 1
  const receipts = Array.from({ length: payments }, (_, index) => paymentOf(chain.trust.chain, number, index))
  const receiptLog = LogTree.from(receipts.map(({ bytes }) => leafHash(bytes)))
  const encoded = new Map(Array.from(objects, ([id, object]) => [id, encodeObject(object)]))
  const state = StateTree.empty.update(new Map(Array.from(encoded, ([id, bytes]) => [id, objectHash(bytes)])))
  const header = headerOf(chain, {
    receiptsRoot: toHex(receiptLog.root()),
    receiptCount: payments,
    stateRoot: toHex(state.root),
    ...overrides,
  })
  const certificate = certificateOf(header, await votesFor(chain, header, places))
  return { header, hash: headerHash(header), certificate, receipts, receiptLog, objects: encoded, state }
}

export const testId = (name: string): Id => toHex(taggedHash(`test/${name}`))

function paymentOf(chain: Id, pulse: number, index: number): SignedPulse['receipts'][number] {
  const to = testId('payee')
  const nonce = testId(`nonce-${pulse}-${index}`).slice(0, 32)
  const body: Body = { chain, signer: testId('payer'), nonce, validUntil: 100, action: { kind: 'transfer', to, amount: 250_000n, purpose: '' } }
  const receipt: Receipt = {
    digest: digestOf(body),
    index,
    pulse,
    outcome: { kind: 'success' },
    fee: 1_100n,
    events: [{ kind: 'Transferred', asset: USD, outputs: [[to, 250_000n]] }],
  }
  return { receipt, bytes: encodeReceipt(receipt), body }
}

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** The answers of an honest node that has these Pulses, by path. The last one is the newest. */
export function answersOf(chain: SignedChain, pulses: readonly SignedPulse[]): Map<string, Json> {
  const answers = new Map<string, Json>()
  answers.set('/v1/genesis', { chain: chain.trust.chain, genesis: toBase64(chain.genesisBytes) })
  for (const pulse of pulses) {
    const whole = pulseJson(pulse)
    const bare = { ...whole, certificate: '' }
    answers.set(`/v1/pulses/${pulse.header.number}`, whole)
    answers.set('/v1/pulses/latest', whole)
    pulse.receipts.forEach(({ receipt, bytes, body }, index) => {
      const proof = { index, size: pulse.receipts.length, path: encodePath(pulse.receiptLog.inclusion(index)) }
      const path = `/v1/receipts/${receipt.digest}`
      answers.set(path, { receipt: toBase64(bytes), proof, pulse: whole })
      answers.set(`${path}?certificate=0`, { receipt: toBase64(bytes), proof, pulse: bare })
      answers.set(`/v1/transactions/${receipt.digest}`, {
        digest: receipt.digest,
        body: toBase64(encodeBody(body)),
        pulse: pulse.header.number,
      })
    })
    for (const id of [...pulse.objects.keys(), testId('nobody')]) {
      const bytes = pulse.objects.get(id)
      const proof = JSON.parse(JSON.stringify(encodeStateProof(pulse.state.prove(id)))) as Json
      const path = `/v1/objects/${id}`
      const object = bytes === undefined ? null : toBase64(bytes)
      answers.set(path, { id, object, proof, pulse: whole })
      answers.set(`${path}?certificate=0`, { id, object, proof, pulse: bare })
    }
  }
  return answers
}

function pulseJson({ header, certificate }: SignedPulse): { [name: string]: Json } {
  return { number: header.number, header: toBase64(encodeHeader(header)), certificate: toBase64(certificate) }
}

/** Real verification that remembers its answers: a test asks the same 20 ms question hundreds of times. */
export function rememberingVerify(): { verify: Signatures['verify']; count: () => number } {
  const known = new Map<string, Promise<boolean>>()
  let asked = 0
  return {
    count: () => asked,
    verify(scheme, publicKey, message, signature) {
      asked++
      const key = toHex(taggedHash(`test/${scheme}`, fromHex(toHex(message), 'message'), publicKey, signature))
      let answer = known.get(key)
      if (answer === undefined) known.set(key, (answer = inlineSignatures.verify(scheme, publicKey, message, signature)))
      return answer
    },
  }
}

/** Every bit of `bytes[at]` but the lowest stays. */
export function flipped(bytes: Uint8Array, at: number, mask = 1): Uint8Array {
  const copy = bytes.slice()
  copy[at] = copy[at]! ^ mask
  return copy
}
