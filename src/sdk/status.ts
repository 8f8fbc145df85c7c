import { describe, isId } from '../codec/index.js'
import { LightClientError, type StatusJson } from '../light/index.js'

/**
 * The node's status, each field of the form the API gives it; others are left out.
 * @throws LightClientError `node_malformed` naming the field.
 */
export function readStatus(body: unknown): StatusJson {
  const at = new Fields(body, '')
  const commitment = new Fields(at.value('commitment'), 'commitment.')
  return {
    active: at.flag('active'),
    active_validators: at.count('active_validators'),
    anchors: at.count('anchors'),
    beacon: at.id('beacon'),
    certified_pulse: at.count('certified_pulse'),
    chain: at.id('chain'),
    chain_id: at.text('chain_id'),
    claims: at.count('claims'),
    commitment: {
      config: commitment.id('config'),
      knowledge_root: commitment.id('knowledge_root'),
      knowledge_size: commitment.count('knowledge_size'),
      pulse: commitment.count('pulse'),
      state_root: commitment.id('state_root'),
    },
    epoch: at.count('epoch'),
    epoch_end: at.number('epoch_end'),
    executed: at.counts('executed'),
    forced_overdue: at.count('forced_overdue'),
    forced_pending: at.count('forced_pending'),
    genesis: at.id('genesis'),
    insecure_signatures: at.flag('insecure_signatures'),
    objects: at.count('objects'),
    proven_pulse: at.count('proven_pulse'),
    pulse: at.count('pulse'),
    round: at.count('round'),
    session: at.count('session'),
    shards: at.count('shards'),
    validator: at.id('validator'),
    validators: at.count('validators'),
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

class Fields {
  readonly #from: Record<string, unknown>

  constructor(
    from: unknown,
    private readonly prefix: string,
  ) {
    if (!isRecord(from)) throw malformed(`${prefix || 'status'}`, from)
    this.#from = from
  }

  value(field: string): unknown {
    return this.#from[field]
  }

  flag(field: string): boolean {
    const value = this.#from[field]
    if (typeof value !== 'boolean') throw malformed(this.prefix + field, value)
    return value
  }

  text(field: string): string {
    const value = this.#from[field]
    if (typeof value !== 'string') throw malformed(this.prefix + field, value)
    return value
  }

  id(field: string): string {
    const value = this.#from[field]
    if (!isId(value)) throw malformed(this.prefix + field, value)
    return value
  }

  /** Any number: the reference's `epoch_end` is 2^63 − 1 where epochs do not end. */
  number(field: string): number {
    const value = this.#from[field]
    if (typeof value !== 'number') throw malformed(this.prefix + field, value)
    return value
  }

  count(field: string): number {
    const value = this.#from[field]
    if (!isCount(value)) throw malformed(this.prefix + field, value)
    return value
  }

  counts(field: string): number[] {
    const value = this.#from[field]
    if (!Array.isArray(value) || !value.every(isCount)) throw malformed(this.prefix + field, value)
    return value
  }
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function malformed(field: string, value: unknown): LightClientError {
  return new LightClientError('node_malformed', `the node's status: ${field} is ${describe(value)} of the wrong form`)
}
