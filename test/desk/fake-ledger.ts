import { CHECKPOINT_EVERY, checkpointCount, checkpointEntry, walkDown } from '../../src/crypto/chain-step.js'
import type { SettleItem, SettleOutcome, SettleResult, StreamLedger, StreamRecord } from '../../src/desk/index.js'
import { WALK_LIMIT } from '../../src/ledger/index.js'
import { leafHash, sameHash, verifyInclusion } from '../../src/merkle/index.js'

type Stored = { -readonly [Key in keyof StreamRecord]: StreamRecord[Key] }

/** A ledger that checks settlements as the real one does, and that can be taken away or made to forget its answers. */
export class FakeLedger implements StreamLedger {
  pulse = 100
  readonly streams = new Map<string, Stored>()
  readonly transactions: SettleItem[][] = []
  /** Chain steps and path nodes hashed by settlements. */
  hashes = 0
  reads = 0
  /** 'away': nothing arrives. 'deaf': it executes, and the answer is lost. */
  mood: 'well' | 'away' | 'deaf' = 'well'

  add(record: StreamRecord): void {
    this.streams.set(record.id, { ...record })
  }

  get(id: string): Stored {
    const stream = this.streams.get(id)
    if (stream === undefined) throw new Error(`no stream ${id}`)
    return stream
  }

  async readStream(id: string): Promise<{ stream: StreamRecord; pulse: number } | undefined> {
    this.#reach()
    this.reads++
    const stream = this.streams.get(id)
    return stream && { stream: { ...stream }, pulse: this.pulse }
  }

  async currentPulse(): Promise<number> {
    this.#reach()
    return this.pulse
  }

  async settle(items: readonly SettleItem[]): Promise<SettleOutcome> {
    this.#reach()
    this.transactions.push([...items])
    const results = items.map((item) => this.#settleOne(item))
    if (this.mood === 'deaf') throw new Error('the answer was lost')
    return { pulse: this.pulse, results }
  }

  #settleOne({ stream: id, position, element, jump }: SettleItem): SettleResult {
    const refuse = (code: string): SettleResult => ({ stream: id, refused: { code, reason: code } })
    const stream = this.streams.get(id)
    if (stream === undefined) return refuse('unknown_stream')
    if (stream.state !== 'open') return refuse('stream_closed')
    if (this.pulse > stream.lastPulse) return refuse('stream_ended')
    if (position <= stream.settled) return refuse('nothing_to_settle')
    if (position > stream.length) return refuse('past_end')
    if (BigInt(position) * stream.stepValue > stream.escrow) return refuse('insufficient_funds')
    if (jump === undefined) {
      if (position - stream.settled > WALK_LIMIT) return refuse('walk_too_long')
      this.hashes += position - stream.settled
      const end = walkDown(stream.salt, position, element, stream.settled)
      if (!sameHash(end, stream.settledElement)) return refuse('wrong_element')
    } else {
      const checkpoint = jump.index * CHECKPOINT_EVERY
      if (position < checkpoint || position - checkpoint >= CHECKPOINT_EVERY) return refuse('wrong_jump')
      this.hashes += position - checkpoint + jump.path.length + 1
      const leaf = leafHash(checkpointEntry(jump.index, walkDown(stream.salt, position, element, checkpoint)))
      const size = checkpointCount(stream.length)
      if (!verifyInclusion(stream.checkpointRoot, size, jump.index - 1, leaf, jump.path)) return refuse('wrong_jump')
    }
    stream.settled = position
    stream.settledElement = element
    return { stream: id, settled: position }
  }

  #reach(): void {
    if (this.mood === 'away') throw new Error('the ledger is out of reach')
  }
}
