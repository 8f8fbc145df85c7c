import { shortId, type Id } from '../codec/index.js'
import { encodeHeader, type Header } from '../pulse/index.js'
import { ConflictingCertificates, type CertifiedBytes } from './errors.js'
import type { Tally } from './rules/index.js'

/** A header whose certificate was checked. */
export interface VerifiedHeader {
  readonly header: Header
  readonly headerHash: Id
  readonly chain: Id
  /** False: the client was given no chain identity, so the node vouched for itself. */
  readonly pinned: boolean
  readonly certificate: Tally
}

/** A verified header with the bytes that prove it, kept as evidence. */
export interface Certified {
  readonly verified: VerifiedHeader
  readonly certificate: Uint8Array
}

/**
 * The headers that were verified last, at most `capacity` (each holds its certificate, 20 kB a vote), so that each is
 * verified once. Every new one is held against those of its own and the neighbouring numbers.
 *
 * State: running, until two certified headers exclude each other; then stopped, for good.
 */
export class VerifiedHeaders {
  readonly #byHash = new Map<Id, Certified>()
  readonly #byNumber = new Map<number, Certified>()
  readonly #underWay = new Map<Id, Promise<VerifiedHeader>>()
  #highest = 0
  #stopped: ConflictingCertificates | undefined

  constructor(private readonly capacity: number) {}

  /** The highest Pulse verified so far, 0 before the first. */
  get highest(): number {
    return this.#highest
  }

  /** @throws ConflictingCertificates once the client has stopped. */
  throwIfStopped(): void {
    if (this.#stopped !== undefined) throw this.#stopped
  }

  get(hash: Id): VerifiedHeader | undefined {
    const known = this.#byHash.get(hash)
    if (known === undefined) return undefined
    // The order of a Map is the order of insertion: what is used moves to the young end.
    this.#byHash.delete(hash)
    this.#byHash.set(hash, known)
    return known.verified
  }

  /** The header `hash`, verified by `verify` unless it was or just is. A failure is not kept. */
  async once(hash: Id, verify: () => Promise<Certified>): Promise<VerifiedHeader> {
    this.throwIfStopped()
    const known = this.get(hash) ?? this.#underWay.get(hash)
    if (known !== undefined) return known
    const work = verify().then((certified) => this.#accept(certified))
    this.#underWay.set(hash, work)
    try {
      return await work
    } finally {
      this.#underWay.delete(hash)
    }
  }

  #accept(certified: Certified): VerifiedHeader {
    this.throwIfStopped()
    const { header, headerHash } = certified.verified
    const conflict = this.#conflictWith(certified)
    if (conflict !== undefined) throw (this.#stopped = conflict)
    this.#byHash.set(headerHash, certified)
    this.#byNumber.set(header.number, certified)
    this.#highest = Math.max(this.#highest, header.number)
    for (const [oldest, { verified }] of this.#byHash) {
      if (this.#byHash.size <= this.capacity) break
      this.#byHash.delete(oldest)
      this.#byNumber.delete(verified.header.number)
    }
    return certified.verified
  }

  #conflictWith(certified: Certified): ConflictingCertificates | undefined {
    const { header, headerHash } = certified.verified
    const { number, parent } = header
    const same = this.#byNumber.get(number)
    if (same !== undefined && same.verified.headerHash !== headerHash) {
      const pair = `${shortId(same.verified.headerHash)} and ${shortId(headerHash)}`
      return new ConflictingCertificates(`two headers are certified for Pulse ${number}: ${pair}`, [evidence(same), evidence(certified)])
    }
    const before = this.#byNumber.get(number - 1)
    if (before !== undefined && before.verified.headerHash !== parent) return fork(before, certified)
    const after = this.#byNumber.get(number + 1)
    if (after !== undefined && after.verified.header.parent !== headerHash) return fork(certified, after)
    return undefined
  }
}

function fork(before: Certified, after: Certified): ConflictingCertificates {
  const { number, parent } = after.verified.header
  return new ConflictingCertificates(
    `the certified Pulse ${number} builds on ${shortId(parent)}, not on the certified Pulse ${number - 1}, ${shortId(before.verified.headerHash)}`,
    [evidence(before), evidence(after)],
  )
}

function evidence({ verified, certificate }: Certified): CertifiedBytes {
  return { number: verified.header.number, header: encodeHeader(verified.header), certificate }
}
