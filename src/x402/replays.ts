import { toHex } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'

/** An answer as it left, to be given again. */
export interface KeptAnswer {
  readonly status: number
  /** Without those of one connection only. */
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: Uint8Array
}

/** A longer answer is not kept. */
export const MAX_KEPT_BYTES = 64 * 1_024
/** All of them together; the oldest go first. */
const MAX_TOTAL_BYTES = 16 * 1_024 * 1_024

/**
 * Answers that were bought, kept for a while for whoever comes again with the same payment and the same request: one
 * whose answer was lost on the way. In this process's memory: another server, or this one after a restart, does not have
 * them. Keys are hashes: no payment is kept.
 */
export class Replays {
  readonly #kept = new Map<string, { answer: KeptAnswer; until: number }>()
  #bytes = 0

  constructor(
    readonly seconds: number,
    readonly now: () => number,
  ) {}

  get(key: string): KeptAnswer | undefined {
    const entry = this.#kept.get(key)
    if (entry === undefined || entry.until < this.now()) return undefined
    return entry.answer
  }

  keep(key: string, answer: KeptAnswer): void {
    if (answer.body.length > MAX_KEPT_BYTES) return
    this.#drop(key)
    this.#kept.set(key, { answer, until: this.now() + this.seconds * 1_000 })
    this.#bytes += answer.body.length
    const now = this.now()
    for (const [oldest, { until }] of this.#kept) {
      if (until >= now && this.#bytes <= MAX_TOTAL_BYTES) return
      this.#drop(oldest)
    }
  }

  #drop(key: string): void {
    const entry = this.#kept.get(key)
    if (entry === undefined) return
    this.#bytes -= entry.answer.body.length
    this.#kept.delete(key)
  }
}

const encoder = new TextEncoder()

/**
 * Names a payment with its request. Undefined for a method whose request may carry a body: two requests that look alike
 * here could ask for different things.
 */
export function replayKey(method: string, target: string, payment: string): string | undefined {
  if (method !== 'GET' && method !== 'HEAD') return undefined
  return toHex(taggedHash('sion/replay-key/v1', encoder.encode(`${method} ${target}\n${payment}`)))
}

const OF_ONE_CONNECTION = /^(?:connection|keep-alive|transfer-encoding|date|content-length|trailer)$/i

/** The headers of an answer that may be given again on another connection. */
export function keptHeaders(headers: Iterable<readonly [string, string | string[]]>): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {}
  for (const [name, value] of headers) if (!OF_ONE_CONNECTION.test(name)) kept[name] = value
  return kept
}
