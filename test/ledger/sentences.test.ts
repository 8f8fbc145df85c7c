import { describe, expect, it } from 'vitest'
import {
  DEFAULT_PARAMETERS,
  intentSentence,
  receiptSentence,
  USD,
  type Action,
  type LedgerEvent,
  type Names,
  type OpenStream,
  type Outcome,
} from '../../src/ledger/index.js'

const bob = 'a27e5e28be5f6fcef56c7adbd682ceb0bc6966f666e87696998c743dc6f88b37'
const dana = 'd4a27f08fe31e101a2bce2845d3ae4c00a16405db06b569c56a34732641cb971'
const stream = '4de1bcf42ffdede89fb0ee8aaa74b876bc5a9eef98747b43fff2abbe2e701374'
const names: Names = (account) => (account === bob ? 'bob' : account.slice(0, 8))
const bytes = new Uint8Array(32)

const ask = (action: Action, known?: Names): string =>
  intentSentence({ chain: dana, signer: dana, nonce: '00'.repeat(16), validUntil: 238, action }, DEFAULT_PARAMETERS, known)
const became = (events: LedgerEvent[], fee = 1_100n): string => receiptSentence({ outcome: { kind: 'success' }, fee, events }, names)
const failed = (reason: string): string => receiptSentence({ outcome: { kind: 'failed', reason }, fee: 1_100n, events: [] }, names)

describe('an intent, as its signer is shown it', () => {
  const pay: Action = { kind: 'transfer', to: bob, amount: 1_000_000n, purpose: '' }
  const open: OpenStream = {
    kind: 'openStream',
    payee: bob,
    anchor: bytes,
    salt: bytes.slice(16),
    checkpointRoot: bytes,
    length: 1_000_000,
    stepValue: 1_000n,
    escrow: 2_500_000n,
    lastPulse: 100_008,
  }

  it.each<[Action, string]>([
    [pay, 'Pay 1 USD to bob. Fee 0.0011 USD; valid until Pulse 238.'],
    [{ ...pay, amount: 1_500_000n }, 'Pay 1.5 USD to bob. Fee 0.0011 USD; valid until Pulse 238.'],
    [{ ...pay, amount: 1n, purpose: 'x402:8f3a' }, 'Pay 0.000001 USD to bob for x402:8f3a. Fee 0.0011 USD; valid until Pulse 238.'],
    [
      { kind: 'setDual', dual: true },
      'Require both signatures, ML-DSA-44 and SLH-DSA-SHA2-128f, for every transaction from now on. Fee 0.001 USD; valid until Pulse 238.',
    ],
    [{ kind: 'setDual', dual: false }, 'Require an ML-DSA-44 signature alone from now on. Fee 0.001 USD; valid until Pulse 238.'],
    [open, 'Open a stream to bob: 1,000,000 steps of 0.001 USD, 2.5 USD in escrow until Pulse 100008. Fee 0.0012 USD; valid until Pulse 238.'],
    [
      { kind: 'topUpStream', stream, amount: 250_000n, lastPulse: 300 },
      'Top up stream 4de1bcf4 by 0.25 USD, until Pulse 300. Fee 0.0011 USD; valid until Pulse 238.',
    ],
    [
      { kind: 'settleStreams', claims: [{ stream, position: 1, element: bytes }] },
      'Settle 1 stream, paying its payee. Fee 0.0011 USD; valid until Pulse 238.',
    ],
    [
      { kind: 'settleStreams', claims: [{ stream, position: 1, element: bytes }, { stream: bob, position: 1, element: bytes }] },
      'Settle 2 streams, paying their payees. Fee 0.0012 USD; valid until Pulse 238.',
    ],
    [{ kind: 'closeStream', stream }, 'Close stream 4de1bcf4, what is not settled going back to its payer. Fee 0.0011 USD; valid until Pulse 238.'],
  ])('of $0.kind: $1', (action, sentence) => {
    expect(ask(action, names)).toBe(sentence)
  })

  it('names accounts by the first digits of their ids where nobody knows a name', () => {
    expect(ask(pay)).toBe('Pay 1 USD to a27e5e28. Fee 0.0011 USD; valid until Pulse 238.')
    expect(ask({ ...pay, to: dana }, names)).toBe('Pay 1 USD to d4a27f08. Fee 0.0011 USD; valid until Pulse 238.')
    expect(ask({ ...open, length: 999, escrow: 1_000n })).toMatch(/^Open a stream to a27e5e28: 999 steps of 0\.001 USD, 0\.001 USD in escrow until Pulse 100008\./)
  })
})

describe('a receipt, as a sentence', () => {
  const paid = (amount: bigint, to = bob): LedgerEvent => ({ kind: 'Transferred', asset: USD, outputs: [[to, amount]] })
  const settled = (name: number, amount: bigint): LedgerEvent => ({
    kind: 'StreamSettled',
    stream: name.toString(16).padStart(8, '0').padEnd(64, '0'),
    payee: bob,
    position: 100,
    amount,
  })
  const refused = (name: number): LedgerEvent => ({
    kind: 'StreamClaimRefused',
    stream: name.toString(16).padStart(8, '0').padEnd(64, '0'),
    code: 'already_settled',
    reason: 'position 3 is settled: the stream is at 3',
  })

  it('of what was done uses the words of the reference', () => {
    expect(became([paid(1_000_000n)])).toBe('Done: paid 1 USD to bob; fee 0.0011 USD.')
    expect(became([paid(1_500_000n)])).toBe('Done: paid 1.5 USD to bob; fee 0.0011 USD.')
    const nameless = receiptSentence({ outcome: { kind: 'success' }, fee: 1_100n, events: [paid(1_500_000n)] })
    expect(nameless).toBe('Done: paid 1.5 USD to a27e5e28; fee 0.0011 USD.')
    expect(became([{ kind: 'Transferred', asset: USD, outputs: [[bob, 1n], [dana, 2n]] }])).toBe(
      'Done: paid 0.000001 USD to bob, paid 0.000002 USD to d4a27f08; fee 0.0011 USD.',
    )
  })

  it('of what failed uses the words of the reference', () => {
    expect(failed('charter caveat violated: payee not allowed')).toBe(
      'Failed (charter caveat violated: payee not allowed); nothing happened except the fee of 0.0011 USD.',
    )
    const outcome: Outcome = { kind: 'failed', reason: 'insufficient balance: 0 USD after the fee, below the payment 1' }
    expect(receiptSentence({ outcome, fee: 1_200n, events: [] })).toBe(
      'Failed (insufficient balance: 0 USD after the fee, below the payment 1); nothing happened except the fee of 0.0012 USD.',
    )
  })

  it.each<[LedgerEvent, string]>([
    [{ kind: 'DualSet', account: bob, dual: true }, 'Done: bob now needs both signatures; fee 0.0011 USD.'],
    [{ kind: 'DualSet', account: bob, dual: false }, 'Done: bob now needs one signature; fee 0.0011 USD.'],
    [{ kind: 'StreamOpened', stream, payer: dana, payee: bob, escrow: 1n, lastPulse: 9 }, 'Done: stream 4de1bcf4 opened; fee 0.0011 USD.'],
    [
      { kind: 'StreamToppedUp', stream, amount: 250_000n, escrow: 1_000_000n, lastPulse: 300 },
      'Done: stream 4de1bcf4 topped up by 0.25 USD, until Pulse 300; fee 0.0011 USD.',
    ],
    [
      { kind: 'StreamSettled', stream, payee: bob, position: 1_000, amount: 250_000n },
      'Done: stream 4de1bcf4 settled up to position 1000, 0.25 USD paid to bob; fee 0.0011 USD.',
    ],
    [{ kind: 'StreamClosed', stream, payer: bob, refund: 5_000n }, 'Done: stream 4de1bcf4 closed, 0.005 USD back to bob; fee 0.0011 USD.'],
  ])('of $0.kind: $1', (event, sentence) => {
    expect(became([event])).toBe(sentence)
  })

  it('lists up to three claims of a settlement, refused ones with their reason', () => {
    expect(became([settled(1, 1_000n), refused(2), settled(3, 2_000n)], 1_300n)).toBe(
      'Done: stream 00000001 settled up to position 100, 0.001 USD paid to bob, ' +
        'claim on stream 00000002 refused (position 3 is settled: the stream is at 3), ' +
        'stream 00000003 settled up to position 100, 0.002 USD paid to bob; fee 0.0013 USD.',
    )
  })

  it('adds up more than that, however they came out', () => {
    const many = (settlements: number, refusals: number): LedgerEvent[] => [
      ...Array.from({ length: settlements }, (_, at) => settled(at, 1_000n)),
      ...Array.from({ length: refusals }, (_, at) => refused(1_000 + at)),
    ]
    expect(became(many(4, 0), 1_400n)).toBe('Done: 4 streams settled, 0.004 USD paid to their payees; fee 0.0014 USD.')
    expect(became(many(3, 1), 1_400n)).toBe('Done: 3 streams settled, 0.003 USD paid to their payees, 1 claim refused; fee 0.0014 USD.')
    expect(became(many(1, 255), 26_600n)).toBe('Done: 1 stream settled, 0.001 USD paid to its payee, 255 claims refused; fee 0.0266 USD.')
    expect(became(many(1_234, 0), 1n)).toBe('Done: 1,234 streams settled, 1.234 USD paid to their payees; fee 0.000001 USD.')
  })
})
