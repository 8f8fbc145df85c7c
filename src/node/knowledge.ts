import { claimLeaf, type IssuedClaim } from '../ledger/index.js'
import type { Id } from '../codec/index.js'
import { LogTree } from '../merkle/index.js'

/** A claim and the Pulse that issued it, at its place in the log. */
export interface KnownClaim {
  readonly claim: Id
  readonly pulse: number
}

/**
 * The knowledge log of the certified chain with all its leaves, in memory: the state has only its frontier, and a proof
 * needs every leaf. The claims in the state say it all, so it is built from them at a start and never stored.
 */
export class Knowledge {
  readonly #claims: KnownClaim[] = []
  readonly tree = new LogTree()

  /** Adds what a certified Pulse issued, in the order of the log. */
  append(pulse: number, issued: readonly IssuedClaim[]): void {
    for (const { claim, logIndex } of issued) {
      if (logIndex !== this.#claims.length) throw new RangeError(`claim ${claim.slice(0, 8)} is at place ${logIndex}, and the log has ${this.#claims.length}`)
      this.#claims.push({ claim, pulse })
      this.tree.append(claimLeaf(claim))
    }
  }

  get size(): number {
    return this.#claims.length
  }

  at(index: number): KnownClaim | undefined {
    return this.#claims[index]
  }

  /** The first place that Pulse `pulse` or a later one filled; the size of the log where there is none. */
  firstOf(pulse: number): number {
    let [from, to] = [0, this.#claims.length]
    while (from < to) {
      const middle = Math.floor((from + to) / 2)
      if ((this.#claims[middle]?.pulse ?? 0) < pulse) from = middle + 1
      else to = middle
    }
    return from
  }
}
