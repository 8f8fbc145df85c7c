import { sha256 } from './hash.js'

/**
 * What was made of the most recently used keys: imported handles, expanded secrets. Bounded, because public keys come
 * from outside. Found by the digest of the key's bytes: a caller may reuse its buffer, and no secret becomes a string.
 */
export class KeyCache<T> {
  readonly #made = new Map<string, T>()

  constructor(
    private readonly most: number,
    private readonly make: (key: Uint8Array) => T,
  ) {}

  get(key: Uint8Array): T {
    const name = String.fromCharCode(...sha256(key))
    let made = this.#made.get(name)
    if (made === undefined) {
      made = this.make(key)
      if (this.#made.size >= this.most) this.#dropOldest()
    } else {
      this.#made.delete(name)
    }
    this.#made.set(name, made)
    return made
  }

  get size(): number {
    return this.#made.size
  }

  #dropOldest(): void {
    for (const name of this.#made.keys()) {
      this.#made.delete(name)
      return
    }
  }
}
