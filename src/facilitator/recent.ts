/** The most recently used entries, at most `limit` of them: a cache that no flood of strangers can grow. */
export class Recent<K, V> {
  readonly #entries = new Map<K, V>()

  constructor(readonly limit: number) {}

  get(key: K): V | undefined {
    const value = this.#entries.get(key)
    if (value === undefined) return undefined
    this.#entries.delete(key)
    this.#entries.set(key, value)
    return value
  }

  set(key: K, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, value)
    if (this.#entries.size <= this.limit) return
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest)
      return
    }
  }
}
