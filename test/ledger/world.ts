import { toHex, type Id } from '../../src/codec/index.js'
import { taggedHash } from '../../src/crypto/hash.js'
import { SIZES } from '../../src/crypto/keys.js'
import {
  accountOf,
  DEFAULT_PARAMETERS,
  EMPTY_ACCOUNT,
  execute,
  type Account,
  type Action,
  type Executed,
  type ExecutionContext,
  type Inadmissible,
  type LedgerObject,
  type SignedTransaction,
  type Stream,
} from '../../src/ledger/index.js'
import type { Rule, RuleContext, RuleResult } from '../../src/ledger/rules/rule.js'

export const CHAIN: Id = toHex(taggedHash('test/chain'))

export interface Signer {
  readonly id: Id
  readonly keys: NonNullable<SignedTransaction['keys']>
}

/** An account of the rules' tests: keys that derive its id, and signatures that nobody checks here. */
export function signer(seed: number): Signer {
  const keys = { mlDsa: new Uint8Array(SIZES.mlDsaPublic).fill(seed), slhDsa: new Uint8Array(SIZES.slhDsaPublic).fill(seed) }
  return { id: accountOf(keys), keys }
}

let nonces = 0

/** A transaction under a nonce of its own. */
export function signed(from: Signer, action: Action, body: Partial<SignedTransaction['body']> = {}): SignedTransaction {
  const nonce = (++nonces).toString(16).padStart(32, '0')
  return {
    body: { chain: CHAIN, signer: from.id, nonce, validUntil: 20, action, ...body },
    keys: from.keys,
    mlDsa: new Uint8Array(SIZES.mlDsaSignature),
  }
}

/** A state in memory at some Pulse. Only {@link World.execute} changes it. */
export class World {
  readonly state = new Map<Id, LedgerObject>()
  pulse = 10

  give(id: Id, balance: bigint, more: Partial<Account> = {}): this {
    this.state.set(id, { ...EMPTY_ACCOUNT, balance, ...more })
    return this
  }

  put(id: Id, object: LedgerObject): this {
    this.state.set(id, object)
    return this
  }

  get context(): ExecutionContext {
    return { chain: CHAIN, pulse: this.pulse, parameters: DEFAULT_PARAMETERS }
  }

  balance(id: Id): bigint {
    const account = this.state.get(id)
    return account?.kind === 'account' ? account.balance : 0n
  }

  stream(id: Id): Stream {
    const stream = this.state.get(id)
    if (stream?.kind !== 'stream') throw new Error(`no stream ${id}`)
    return stream
  }

  /** A rule alone, without fee, nonce and keys. The state stays. */
  ask<A>(rule: Rule<A>, action: A, from: Signer, more: Partial<RuleContext> = {}): RuleResult {
    return rule(this.state, action, { signer: from.id, digest: toHex(taggedHash('test/digest')), ...this.context, ...more })
  }

  /** A whole transaction, its writes applied. */
  execute(tx: SignedTransaction): Executed | Inadmissible {
    const result = execute(this.state, tx, this.context)
    if (result.kind === 'executed') this.apply(result.writes)
    return result
  }

  apply(writes: ReadonlyMap<Id, LedgerObject | null>): void {
    for (const [id, object] of writes) {
      if (object === null) this.state.delete(id)
      else this.state.set(id, object)
    }
  }
}

/** What a rule answers when it fails. */
export function failureOf(result: RuleResult): string {
  if ('failed' in result) return result.failed
  throw new Error('the action did not fail')
}

/** The effects of a rule that must not fail. */
export function effectsOf(result: RuleResult): Exclude<RuleResult, { failed: string }> {
  if ('failed' in result) throw new Error(`the action failed: ${result.failed}`)
  return result
}
