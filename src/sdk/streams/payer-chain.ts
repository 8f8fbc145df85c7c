import { InputError } from '../../codec/errors.js'
import {
  CHECKPOINT_EVERY,
  checkpointCount,
  checkpointEntry,
  createWalker,
  ELEMENT_LENGTH,
  MAX_POSITION,
  SALT_LENGTH,
  type ChainWalker,
} from '../../crypto/chain-step.js'
import { taggedHash } from '../../crypto/hash.js'
import { leafHash, levelsOf, type MerkleLevels } from '../../merkle/log-tree.js'

/** All that a payer must keep of a chain, beside its next position: the rest is computed again from it. */
export interface ChainSecret {
  /** 32 random bytes. Whoever has them can spend the whole stream. */
  readonly seed: Uint8Array
  /** 16 bytes, public. */
  readonly salt: Uint8Array
  /** Number of elements, 1 to 2^32 − 1. */
  readonly length: number
}

export interface BuildOptions {
  /** The position that will be paid next, by default 1: the elements around it are kept from the walk. */
  next?: number
  /** Told after every few milliseconds of walking. */
  onProgress?: (done: number, total: number) => void
}

/** What the first payment past checkpoint `index` (position 64 × index) carries: the checkpoint's inclusion path. */
export interface CheckpointJump {
  readonly index: number
  readonly path: Uint8Array[]
}

/** Steps between two turns of the event loop: about 10 ms. */
const STEPS_PER_TURN = 32_768

/**
 * The payer's side of a chain (docs/protocol.md §11): reveals elements in ascending order although they derive in
 * descending order.
 *
 * Kept are every 64th element (they are the checkpoint tree's leaves anyway) and the elements of the segment being
 * revealed, of the one before (a refused payment goes back) and of the next. A segment derives from the checkpoint
 * above it, so while one is revealed the next is computed, one step for each position advanced: no reveal in ascending
 * order costs more, and a reveal anywhere else at most 63 steps. A million elements take under 2 MiB.
 */
export class PayerChain {
  readonly length: number
  readonly salt: Uint8Array
  /** e(0), public. */
  readonly anchor: Uint8Array
  /** Root of the checkpoint tree; its size is ⌊length / 64⌋. */
  readonly checkpointRoot: Uint8Array

  readonly #walker: ChainWalker
  readonly #marks: Marks
  readonly #tree: MerkleLevels
  #previous: Segment
  #current: Segment
  #next: Segment
  #last: number
  #hashed = 0

  private constructor(secret: ChainSecret, walked: Walked, last: number) {
    this.length = secret.length
    this.salt = secret.salt
    this.anchor = walked.anchor
    this.#walker = walked.walker
    this.#marks = walked.marks
    this.#tree = treeOf(walked.marks)
    this.checkpointRoot = this.#tree.root
    this.#previous = emptySegment()
    this.#current = walked.current
    this.#next = walked.next
    this.#last = last
  }

  /**
   * Walks the chain once, in turns, so that the event loop stays alive. Tens of milliseconds for 100,000 elements, half
   * a second for a million.
   * @throws InputError for a seed, salt, length or position of the wrong shape.
   */
  static async build(secret: ChainSecret, options: BuildOptions = {}): Promise<PayerChain> {
    checkSecret(secret)
    const next = options.next ?? 1
    // After the last element there is still a chain: to settle, to show, to go back to.
    if (!Number.isInteger(next) || next < 1 || next > secret.length + 1) {
      throw new InputError('next', `expected a position from 1 to ${secret.length + 1}, not ${next}`)
    }
    const segment = Math.floor(Math.min(next, secret.length) / CHECKPOINT_EVERY)
    const walked = await walkWhole(secret, segment, options.onProgress)
    return new PayerChain(secret, walked, next - 1)
  }

  /** Chain steps computed since the set-up. */
  get hashed(): number {
    return this.#hashed
  }

  /**
   * e(position), 32 fresh bytes.
   * @throws InputError for a position outside 1 … length.
   */
  reveal(position: number): Uint8Array {
    this.#checkPosition(position)
    const number = Math.floor(position / CHECKPOINT_EVERY)
    this.#enter(number)
    const advanced = position - this.#last
    this.#last = position
    if (advanced > 0) this.#compute(this.#next, Math.min(advanced, CHECKPOINT_EVERY))
    if (position % CHECKPOINT_EVERY === 0) return this.#marks.at(position).slice()
    const segment = this.#previous.number === number ? this.#previous : this.#current
    const offset = (position % CHECKPOINT_EVERY) * ELEMENT_LENGTH
    return segment.elements.slice(offset, offset + ELEMENT_LENGTH)
  }

  /**
   * The jump of the highest checkpoint at or below `position`; undefined below the first.
   * @throws InputError for a position outside 1 … length.
   */
  jump(position: number): CheckpointJump | undefined {
    this.#checkPosition(position)
    const index = Math.floor(position / CHECKPOINT_EVERY)
    return index === 0 ? undefined : { index, path: this.#tree.path(index - 1) }
  }

  /** Makes `number` the current segment, complete, unless it is the one before. */
  #enter(number: number): void {
    if (number === this.#current.number || number === this.#previous.number) return
    const spare = this.#previous
    if (number === this.#next.number) {
      this.#previous = this.#current
      this.#current = this.#next
      this.#next = spare
    } else {
      this.#previous = this.#current
      this.#current = spare
      this.#begin(spare, number)
    }
    // Nothing is left to do here when the segments came in order.
    this.#compute(this.#current, CHECKPOINT_EVERY)
    if (this.#next.number !== number + 1) this.#begin(this.#next, number + 1)
  }

  #begin(segment: Segment, number: number): void {
    segment.number = number
    // A segment past the end holds nothing and has nothing left to compute.
    segment.known = Math.max(number * CHECKPOINT_EVERY, Math.min((number + 1) * CHECKPOINT_EVERY, this.length + 1))
  }

  /** At most `steps` more elements of a segment, downwards from what it knows. */
  #compute(segment: Segment, steps: number): void {
    const { elements } = segment
    const bottom = segment.number * CHECKPOINT_EVERY + 1
    for (let step = 0; step < steps && segment.known > bottom; step++) {
      const position = segment.known - 1
      const offset = (position % CHECKPOINT_EVERY) * ELEMENT_LENGTH
      const target = elements.subarray(offset, offset + ELEMENT_LENGTH)
      if (position === this.length) {
        target.set(this.#marks.top)
      } else {
        const above =
          (position + 1) % CHECKPOINT_EVERY === 0
            ? this.#marks.at(position + 1)
            : elements.subarray(offset + ELEMENT_LENGTH, offset + 2 * ELEMENT_LENGTH)
        this.#walker.down(above, position + 1, position, target)
        this.#hashed++
      }
      segment.known = position
    }
  }

  #checkPosition(position: number): void {
    if (!Number.isInteger(position) || position < 1 || position > this.length) {
      throw new InputError('position', `expected a position from 1 to ${this.length}, not ${position}`)
    }
  }
}

/** 64 elements from position 64 × number; those at `known` and above are computed (the lowest is the checkpoint itself). */
interface Segment {
  number: number
  known: number
  readonly elements: Uint8Array
}

/** The kept elements: e(64), e(128), … and the top. */
class Marks {
  readonly bytes: Uint8Array

  constructor(
    readonly top: Uint8Array,
    length: number,
  ) {
    this.bytes = new Uint8Array(checkpointCount(length) * ELEMENT_LENGTH)
  }

  at(position: number): Uint8Array {
    const offset = (position / CHECKPOINT_EVERY - 1) * ELEMENT_LENGTH
    return this.bytes.subarray(offset, offset + ELEMENT_LENGTH)
  }
}

interface Walked {
  walker: ChainWalker
  anchor: Uint8Array
  marks: Marks
  current: Segment
  next: Segment
}

async function walkWhole(secret: ChainSecret, segment: number, onProgress: BuildOptions['onProgress']): Promise<Walked> {
  const { length, salt } = secret
  const walker = createWalker(salt)
  const top = topOf(secret)
  const marks = new Marks(top, length)
  const current = emptySegment(segment)
  const next = emptySegment(segment + 1)
  const element = top.slice()
  let turn = 0
  const keep = (position: number): void => {
    if (position % CHECKPOINT_EVERY === 0) marks.at(position).set(element)
    const number = Math.floor(position / CHECKPOINT_EVERY)
    const into = number === segment ? current : number === segment + 1 ? next : undefined
    into?.elements.set(element, (position % CHECKPOINT_EVERY) * ELEMENT_LENGTH)
  }
  for (let position = length; position > 0; ) {
    keep(position)
    // Whole segments in one call, except where each element is kept.
    const number = Math.floor((position - 1) / CHECKPOINT_EVERY)
    const target = number === segment || number === segment + 1 ? position - 1 : number * CHECKPOINT_EVERY
    walker.down(element, position, target, element)
    turn += position - target
    position = target
    if (turn >= STEPS_PER_TURN) {
      turn = 0
      onProgress?.(length - position, length)
      await nextTurn()
    }
  }
  onProgress?.(length, length)
  return { walker, anchor: element, marks, current, next }
}

function emptySegment(number = -1): Segment {
  return { number, known: number * CHECKPOINT_EVERY + 1, elements: new Uint8Array(CHECKPOINT_EVERY * ELEMENT_LENGTH) }
}

/** e(length): nothing but the seed's owner can tell it, and two lengths or salts share none. */
function topOf({ seed, salt, length }: ChainSecret): Uint8Array {
  const size = new Uint8Array(4)
  new DataView(size.buffer).setUint32(0, length)
  return taggedHash('sion/stream-top/v1', seed, salt, size)
}

function treeOf(marks: Marks): MerkleLevels {
  const leaves = new Uint8Array(marks.bytes.length)
  for (let offset = 0; offset < leaves.length; offset += ELEMENT_LENGTH) {
    const element = marks.bytes.subarray(offset, offset + ELEMENT_LENGTH)
    leaves.set(leafHash(checkpointEntry(offset / ELEMENT_LENGTH + 1, element)), offset)
  }
  return levelsOf(leaves)
}

function checkSecret({ seed, salt, length }: ChainSecret): void {
  if (seed.length !== 32) throw new InputError('seed', `expected 32 bytes, not ${seed.length}`)
  if (salt.length !== SALT_LENGTH) throw new InputError('salt', `expected ${SALT_LENGTH} bytes, not ${salt.length}`)
  if (!Number.isInteger(length) || length < 1 || length > MAX_POSITION) {
    throw new InputError('length', `expected a whole number from 1 to ${MAX_POSITION}, not ${length}`)
  }
}

/** A turn of the event loop, timers and sockets included, in any runtime: a promise alone would starve them. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0)
  })
}
