import { formatUsd, fromHex, shortId, type Id } from '../codec/index.js'
import type { DualPublicKeys } from '../crypto/keys.js'
import type { Signatures } from '../crypto/signatures.js'
import { accountAt, accountOf, admissible, decodeSigned, digestOf, feeOf, keysToCheck, spendOf, type Action, type SignedTransaction } from '../ledger/index.js'
import type { Chain } from './chain.js'
import type { Committee } from './committee.js'
import type { Head } from './head.js'
import type { Mempool } from './mempool.js'
import { refuse, type Refusal } from './refusal.js'
import type { Store } from './store.js'

/** It will execute in this Pulse or soon after it; or it did, in this Pulse. */
export interface Taken {
  readonly kind: 'taken'
  readonly digest: Id
  readonly pulse: number
}

/** Pending transactions, at most. A signed one is 3 to 22 kB. */
const MAX_PENDING = 10_000
/** Signatures being checked, at most: some seconds of work. */
const MAX_CHECKING = 2_000

/**
 * Who gets into the mempool. Everything cheap is looked at first; signatures are checked off the event loop, and since
 * the chain goes on meanwhile, everything cheap is looked at again after.
 */
export class Admission {
  #checking = 0

  constructor(
    private readonly chain: Chain,
    private readonly head: Head,
    private readonly store: Store,
    private readonly mempool: Mempool,
    private readonly committee: Committee,
    private readonly signatures: Signatures,
    private readonly onPending: () => void,
  ) {}

  /**
   * Takes a signed transaction in its canonical bytes. One that is pending or executed already is taken again, if its
   * signatures are good: bodies are public once they executed, and knowing one is not having signed it.
   * @throws InputError for bytes that are no transaction.
   */
  async submit(bytes: Uint8Array): Promise<Taken | Refusal> {
    const tx = decodeSigned(bytes)
    const digest = digestOf(tx.body)
    const pending = this.mempool.find(digest)
    if (pending !== undefined && Buffer.compare(pending.bytes, bytes) === 0) return taken(digest, pending.pulse)
    const refusal = this.#known(digest) === undefined ? this.#problem(tx) : undefined
    const bad = refusal ?? (await this.#badSignature(tx, digest))
    if (bad !== undefined) return bad
    return this.#known(digest) ?? this.#problem(tx) ?? this.#take(tx, digest, bytes)
  }

  #known(digest: Id): Taken | undefined {
    const pulse = this.mempool.find(digest)?.pulse ?? this.store.placeOf(digest)?.pulse
    return pulse === undefined ? undefined : taken(digest, pulse)
  }

  #take(tx: SignedTransaction, digest: Id, bytes: Uint8Array): Taken {
    const pulse = this.head.next
    const spend = spendOf(tx.body.action, this.chain.parameters)
    this.mempool.add({ digest, tx, bytes, spend, pulse, since: performance.now() })
    this.onPending()
    return taken(digest, pulse)
  }

  /** Why the next Pulse cannot take it, whatever its signatures. */
  #problem(tx: SignedTransaction): Refusal | undefined {
    const { signer, nonce, action } = tx.body
    if (!this.committee.active) return refuse('chain_halted', 'the chain is halted: too few validators run; it may be sent again')
    if (this.mempool.size >= MAX_PENDING || this.#checking >= MAX_CHECKING) {
      return refuse('too_busy', `${this.mempool.size} transactions are pending and ${this.#checking} being checked: it may be sent again`)
    }
    if (this.mempool.takes(signer, nonce)) {
      return refuse('replayed', 'another transaction of this signer with this nonce is pending')
    }
    const state = this.head.state()
    const { parameters } = this.chain
    const refusal = admissible(state, tx, { chain: this.chain.id, pulse: this.head.next, parameters })
    if (refusal !== undefined && refusal.code !== 'insufficient_fee') return refuse(refusal.code, refusal.reason)
    const balance = (accountAt(state, signer)?.balance ?? 0n) - this.mempool.reserved(signer)
    const need = spendOf(action, parameters)
    if (balance >= need) return undefined
    const has = `insufficient balance: ${shortId(signer)} has ${formatUsd(balance)} USD`
    if (need === feeOf(action, parameters)) return refuse('insufficient_fee', `${has}, the fee is ${formatUsd(need)} USD`)
    const what = MOVED[action.kind] ?? 'what it moves'
    return refuse('insufficient_balance', `${has}, ${what} and its fee need ${formatUsd(need)} USD`)
  }

  async #badSignature(tx: SignedTransaction, digest: Id): Promise<Refusal | undefined> {
    const keys = this.#keysFor(tx)
    if (keys === undefined) return refuse('unknown_keys', 'the ledger does not know the signer’s keys: send them along')
    const message = fromHex(digest, 'digest', 32)
    this.#checking++
    try {
      if (!(await this.signatures.verify('ml-dsa-44', keys.mlDsa, message, tx.mlDsa))) {
        return refuse('bad_signature', 'the ML-DSA-44 signature is not the signer’s')
      }
      if (tx.slhDsa !== undefined && !(await this.signatures.verify('slh-dsa-sha2-128f', keys.slhDsa, message, tx.slhDsa))) {
        return refuse('bad_signature', 'the SLH-DSA-SHA2-128f signature is not the signer’s')
      }
      return undefined
    } finally {
      this.#checking--
    }
  }

  /** Recorded keys, or those sent along if they are the signer's. */
  #keysFor(tx: SignedTransaction): DualPublicKeys | undefined {
    const keys = keysToCheck(this.head.state(), tx)
    return keys !== undefined && accountOf(keys) === tx.body.signer ? keys : undefined
  }
}

/** What an action takes from its signer besides the fee. */
const MOVED: Partial<Record<Action['kind'], string>> = {
  transfer: 'the payment',
  openStream: 'the escrow',
  topUpStream: 'the escrow',
  depositBond: 'the deposit',
}

function taken(digest: Id, pulse: number): Taken {
  return { kind: 'taken', digest, pulse }
}
