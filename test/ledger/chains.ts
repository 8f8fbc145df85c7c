import { toHex, type Id } from '../../src/codec/index.js'
import { taggedHash } from '../../src/crypto/hash.js'
import type { OpenStream, Stream, StreamClaim } from '../../src/ledger/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'

/** A real chain of `length` elements; another name, another chain. */
export function chainOf(length: number, name = 'chain'): Promise<PayerChain> {
  return PayerChain.build({ seed: taggedHash(`test/${name}`), salt: taggedHash(`test/salt/${name}`).slice(0, 16), length })
}

/** What opens a stream over the chain, with escrow for all of it. */
export function opening(chain: PayerChain, payee: Id, terms: Partial<OpenStream> = {}): OpenStream {
  const stepValue = terms.stepValue ?? 1_000n
  return {
    kind: 'openStream',
    payee,
    anchor: chain.anchor,
    salt: chain.salt,
    checkpointRoot: chain.checkpointRoot,
    length: chain.length,
    stepValue,
    escrow: stepValue * BigInt(chain.length),
    lastPulse: 100,
    ...terms,
  }
}

/** The stream object over the chain as it stands at `settled`. */
export function streamOver(chain: PayerChain, payer: Id, payee: Id, terms: Partial<Stream> = {}): Stream {
  const { anchor, salt, checkpointRoot, length, stepValue, escrow, lastPulse } = opening(chain, payee)
  const settled = terms.settled ?? 0
  return {
    kind: 'stream',
    payer,
    payee,
    anchor,
    salt,
    checkpointRoot,
    length,
    stepValue,
    escrow,
    lastPulse,
    settled,
    settledElement: terms.settledElement ?? (settled === 0 ? anchor : chain.reveal(settled)),
    closed: false,
    ...terms,
  }
}

/** The claim of a walk from `position`. */
export function walkTo(chain: PayerChain, stream: Id, position: number): StreamClaim {
  return { stream, position, element: chain.reveal(position) }
}

/** The claim of a jump to the checkpoint below `position`. */
export function jumpTo(chain: PayerChain, stream: Id, position: number): StreamClaim & { jump: NonNullable<StreamClaim['jump']> } {
  const jump = chain.jump(position)
  if (jump === undefined) throw new Error(`no checkpoint below ${position}`)
  return { stream, position, element: chain.reveal(position), jump }
}

export const streamIdOf = (name: string): Id => toHex(taggedHash(`test/stream/${name}`))
