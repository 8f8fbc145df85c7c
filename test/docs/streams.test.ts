import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import { buildProgram } from '../../src/cli/program.js'
import { formatUsd, fromHex, toHex } from '../../src/codec/index.js'
import { checkpointEntry, createWalker, MAX_POSITION } from '../../src/crypto/chain-step.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { refusals, type Refusal } from '../../src/desk/refusal.js'
import { MAX_STEPS_PER_PAYMENT } from '../../src/desk/stream-view.js'
import { MAX_CLAIMS, type Action } from '../../src/ledger/actions.js'
import { feeOf } from '../../src/ledger/fees.js'
import { DEFAULT_PARAMETERS } from '../../src/ledger/parameters.js'
import type { LedgerEvent } from '../../src/ledger/receipt.js'
import { MAX_STREAM_PULSES, SETTLE_HASH_LIMIT, WALK_LIMIT } from '../../src/ledger/rules/streams.js'
import { intentSentence, receiptSentence } from '../../src/ledger/sentences.js'
import { leafHash, nodeHash, verifyInclusion } from '../../src/merkle/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { CODES, isCode } from '../../src/x402/codes.js'
import { parseStreamPayload } from '../../src/x402/stream/payment.js'
import { streamRequirements } from '../../src/x402/stream/terms.js'
import { record } from '../../src/x402/wire.js'
import { fencesOf, readDocument, root } from './markdown.js'

const text = readDocument('docs/streams.md')
const fences = fencesOf(text)

/** Rows of the table whose first heading is this. */
function rowsOf(heading: string): string[][] {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${heading} |`))
  if (start < 0) throw new Error(`no table begins with ${heading}`)
  const rows: string[][] = []
  for (const line of lines.slice(start + 2)) {
    if (!line.startsWith('|')) break
    rows.push(line.split('|').slice(1, -1).map((cell) => cell.trim()))
  }
  return rows
}

function bare(cell: string | undefined): string {
  return (cell ?? '').replaceAll('`', '')
}

function jsonOf(role: string, at = 0): Record<string, unknown> {
  const fence = fences.filter((each) => each.language === 'json' && each.role === role)[at]
  if (fence === undefined) throw new Error(`no ${role} in the document`)
  return record(JSON.parse(fence.text), role)
}

describe('the vector of docs/streams.md', () => {
  const named = new Map(rowsOf('name').map(([name = '', value]) => [name, bare(value)]))
  const hex = (name: string): Uint8Array => fromHex(named.get(name), name)
  const length = Number(named.get('n'))

  it('is the chain that its seed, salt and length give', async () => {
    const chain = await PayerChain.build({ seed: hex('seed'), salt: hex('salt'), length })
    expect(toHex(chain.anchor)).toBe(named.get('anchor e(0)'))
    expect(toHex(chain.checkpointRoot)).toBe(named.get('checkpoint root'))
    const positions = [...named.keys()].flatMap((name) => /^e\((\d+)\)$/.exec(name)?.[1] ?? []).map(Number)
    expect(positions).toEqual([130, 128, 65, 64, 1])
    for (const position of positions) expect(toHex(chain.reveal(position)), `e(${position})`).toBe(named.get(`e(${position})`))
    for (const index of [1, 2]) {
      expect(chain.jump(64 * index)?.path.map((node) => toHex(node))).toEqual([named.get(`path of checkpoint ${index}`)])
    }
  })

  it('follows from the rules in its words, without the payer of this package', () => {
    const size = Uint8Array.of(0, 0, 0, length)
    expect(toHex(taggedHash('sion/stream-top/v1', hex('seed'), hex('salt'), size))).toBe(named.get('e(130)'))
    const walker = createWalker(hex('salt'))
    expect(toHex(walker.down(hex('e(130)'), 130, 0))).toBe(named.get('anchor e(0)'))
    const leaves = [1, 2].map((index) => leafHash(checkpointEntry(index, hex(`e(${64 * index})`))))
    expect(leaves.map((leaf) => toHex(leaf))).toEqual([named.get('leaf of checkpoint 1'), named.get('leaf of checkpoint 2')])
    const [first, second] = leaves
    if (first === undefined || second === undefined) throw new Error('two leaves')
    expect(toHex(nodeHash(first, second))).toBe(named.get('checkpoint root'))
    expect(verifyInclusion(hex('checkpoint root'), 2, 0, first, [hex('path of checkpoint 1')])).toBe(true)
  })
})

describe('the tables of docs/streams.md', () => {
  const place = { position: 0 }
  /** One of each: the compiler asks for those that are added. */
  const each: { [name in keyof typeof refusals]: Refusal } = {
    position: refusals.position(0),
    value: refusals.value(31),
    jumpShape: refusals.jumpShape(''),
    unknown: refusals.unknown('00'),
    payee: refusals.payee('00', '01'),
    asset: refusals.asset('EUR'),
    closed: refusals.closed(),
    closing: refusals.closing(),
    wholeSteps: refusals.wholeSteps(1n, 2n),
    steps: refusals.steps(5_000n, 4_096),
    end: refusals.end(2, 1),
    wrongPosition: refusals.wrongPosition(1, 2, place),
    ahead: refusals.ahead(2, 1, place),
    used: refusals.used(1, 1, place),
    element: refusals.element(1, place),
    jumpDue: refusals.jumpDue(1, place),
    jumpPastEnd: refusals.jumpPastEnd(2, 1),
    jumpIndex: refusals.jumpIndex(2, 1),
    jumpPathLength: refusals.jumpPathLength(2, 1),
    jump: refusals.jump(1),
    funds: refusals.funds(2n, 1n, place),
    expiring: refusals.expiring(1, 10, place),
  }

  it('list the refusals of the desk, each with its place where it has one', () => {
    const documented = rowsOf('code | the payment…').map(([code, , where]) => [bare(code), where === 'yes'])
    const real = Object.values(each).map(({ code, position }) => [code, position !== undefined])
    expect(documented).toEqual(real)
    for (const [code] of documented) expect(isCode(code) && CODES[code].status, String(code)).toBe(402)
  })

  it('list the codes with which the ledger refuses a claim', () => {
    const source = readFileSync(`${root}src/ledger/rules/streams.ts`, 'utf8')
    const real = new Set([...source.matchAll(/(?:refused\(|code: )'([a-z_]+)'/g)].map(([, code]) => code))
    expect(new Set(rowsOf('code of a refused claim').map(([code]) => bare(code)))).toEqual(real)
  })

  it('name only codes that there are for 503', () => {
    const [, codes = ''] = /503 with `Retry-After` means([\s\S]*?)\n\n/.exec(text) ?? []
    const named = [...codes.matchAll(/`([a-z_]+)`/g)].map(([, code]) => code)
    expect(named.length).toBeGreaterThan(3)
    for (const code of named) expect(isCode(code) && CODES[code].status, code).toBe(503)
  })

  it('state the limits that the code has', () => {
    const limits = new Map(rowsOf('what | limit').map(([what, limit]) => [what, Number(limit?.replaceAll(',', ''))]))
    expect([...limits]).toEqual([
      ['elements of a chain', MAX_POSITION],
      ['steps of one payment', MAX_STEPS_PER_PAYMENT],
      ['window', 4_096],
      ['streams in one settlement', MAX_CLAIMS],
      ['steps of one walk', WALK_LIMIT],
      ['ledger hashes of one settlement', SETTLE_HASH_LIMIT],
      ['Pulses that a last Pulse lies ahead', MAX_STREAM_PULSES],
    ])
  })

  it('state the fees of the default parameters', () => {
    const fees = rowsOf('action | who').map(([action, , , fee]) => [action?.split(/[: ]/)[0], fee])
    const usd = (action: Action): string => formatUsd(feeOf(action, DEFAULT_PARAMETERS))
    expect(fees).toEqual([
      ['open', usd(opening)],
      ['top', usd(topUp)],
      ['settle', '0.001 + 0.0001 a stream'],
      ['close', usd(closing)],
      ['close', usd(closing)],
    ])
    expect(usd(settling)).toBe('0.0011')
  })
})

const stream = '4de1bcf42ffdede89fb0ee8aaa74b876bc5a9eef98747b43fff2abbe2e701374'
const dana = 'd'.repeat(64)
const carol = 'c'.repeat(64)
const bytes = new Uint8Array(32)
const opening = {
  kind: 'openStream',
  payee: carol,
  anchor: bytes,
  salt: new Uint8Array(16),
  checkpointRoot: bytes,
  length: 100_000,
  stepValue: 1_000n,
  escrow: 5_000_000n,
  lastPulse: 100_012,
} as const satisfies Action
const topUp = { kind: 'topUpStream', stream, amount: 5_000_000n, lastPulse: 200_012 } as const satisfies Action
const settling: Action = { kind: 'settleStreams', claims: [{ stream, position: 200, element: bytes }] }
const closing = { kind: 'closeStream', stream } as const satisfies Action

describe('what docs/streams.md shows', () => {
  it('are the sentences of the ledger', () => {
    const names = (account: string): string => (account === carol ? 'carol' : 'dana')
    const ask = (action: Action): string =>
      intentSentence({ chain: dana, signer: dana, nonce: '00'.repeat(16), validUntil: 112, action }, DEFAULT_PARAMETERS, names)
    const done = (action: Action, event: LedgerEvent): string =>
      receiptSentence({ outcome: { kind: 'success' }, fee: feeOf(action, DEFAULT_PARAMETERS), events: [event] }, names)
    const { escrow, lastPulse } = opening
    const sentences = [
      ask(opening),
      done(opening, { kind: 'StreamOpened', stream, payer: dana, payee: carol, escrow, lastPulse }),
      ask(topUp),
      done(topUp, { kind: 'StreamToppedUp', stream, amount: topUp.amount, escrow: 10_000_000n, lastPulse: topUp.lastPulse }),
      ask(settling),
      done(settling, { kind: 'StreamSettled', stream, payee: carol, position: 200, amount: 200_000n }),
      ask(closing),
      done(closing, { kind: 'StreamClosed', stream, payer: dana, refund: 9_800_000n }),
    ]
    expect(fences.map((fence) => fence.text)).toContain(sentences.join('\n'))
  })

  it('is the requirement that a seller quotes', () => {
    const shown = jsonOf('requirements')
    const chain = String(record(shown['extra'], 'extra')['chain'])
    const payee = String(shown['payTo'])
    expect(streamRequirements({ chain, payee, amount: 1_000n, margin: 10, window: 32 })).toEqual(shown)
    expect(jsonOf('payment')['accepted']).toEqual(shown)
  })

  it('is a payment of the vector, cut', () => {
    const values = rowsOf('name').map(([, value]) => bare(value))
    const whole = (cut: unknown): string => values.find((value) => value.startsWith(String(cut).replace('…', ''))) ?? String(cut)
    const payload = record(jsonOf('payment')['payload'], 'payload')
    const { index, path } = record(payload['jump'], 'jump')
    if (!Array.isArray(path)) throw new TypeError('path')
    const payment = parseStreamPayload({ ...payload, value: whole(payload['value']), jump: { index, path: path.map(whole) } })
    expect(payment).toMatchObject({ stream, position: 64, window: true, jump: { index: 1 } })
    expect(toHex(payment.value)).toBe(values[6])
    expect(payment.jump?.path.map((node) => toHex(node))).toEqual([values.at(-2)])
  })

  it('is a refusal as the desk gives it', () => {
    const { errorReason, extensions } = jsonOf('settlement', 1)
    const { position, floor, unused, code } = record(record(extensions, 'extensions')['sion'], 'sion')
    expect(refusals.ahead(80, 38, { position: 6, floor: 6, unused: [[7, 9], [11, 38]] })).toEqual({
      accepted: false,
      code,
      reason: errorReason,
      position,
      floor,
      unused,
    })
  })

  it('are commands and flags that there are', () => {
    const lines = [...text.matchAll(/^(sion .*)$|`(sion [^`]+)`/gm)].map(([, line, inline]) => line ?? inline ?? '')
    expect(lines.length).toBeGreaterThan(10)
    for (const line of lines) {
      const [, ...words] = line.replaceAll(/[[\]|]/g, ' ').split(/ +/)
      let command: Command | undefined = buildProgram()
      while (command !== undefined && command.commands.length > 0) {
        const word = words.shift()
        // `sion desk` alone is the whole family.
        if (word === undefined) break
        command = command.commands.find((each) => each.name() === word)
      }
      expect(command, line).toBeDefined()
      const known = command?.options.map(({ long }) => long)
      for (const flag of words.filter((word) => word.startsWith('--'))) expect(known, line).toContain(flag)
    }
  })
})
