import { createHash, randomBytes } from 'node:crypto'
import {
  memoryStore,
  StreamDesk,
  type Accepted,
  type Logger,
  type Refusal,
  type StreamDeskOptions,
  type StreamPayment,
  type StreamRecord,
} from '../../src/desk/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { FakeLedger } from './fake-ledger.js'

export const PAYEE = 'bb'.repeat(32)
export const PAYER = 'aa'.repeat(32)
export const STEP = 1_000n

/** Time that tests move by hand. */
export class FakeClock {
  time = 1_000_000
  now = (): number => this.time
}

/** Remembers what was logged. */
export class Log implements Logger {
  readonly lines: { level: string; fields: object; message: string }[] = []
  info = (fields: object, message: string): void => void this.lines.push({ level: 'info', fields, message })
  warn = (fields: object, message: string): void => void this.lines.push({ level: 'warn', fields, message })
  error = (fields: object, message: string): void => void this.lines.push({ level: 'error', fields, message })
  at(level: string): string[] {
    return this.lines.filter((line) => line.level === level).map(({ message }) => message)
  }
}

/** A stream with its payer. */
export class Payer {
  #jumped = 0

  constructor(
    readonly id: string,
    readonly chain: PayerChain,
  ) {}

  pay(position: number, extra: Partial<StreamPayment> = {}): StreamPayment {
    return { stream: this.id, position, value: this.chain.reveal(position), ...extra }
  }

  /** With the jump a payer sends when `position` is the first past a checkpoint in steps of `steps`. */
  payWithJump(position: number, steps = 1): StreamPayment {
    const jump = this.chain.jump(position)
    const first = jump !== undefined && position - steps < jump.index * 64
    return this.pay(position, first ? { jump } : {})
  }

  /** With the jump of the highest checkpoint up to `position`, until {@link told} that a desk took one: in any order. */
  payUntilTold(position: number, extra: Partial<StreamPayment> = {}): StreamPayment {
    const jump = this.chain.jump(position)
    return this.pay(position, jump !== undefined && jump.index > this.#jumped ? { jump, ...extra } : extra)
  }

  /** A desk accepted this payment. */
  told({ jump }: StreamPayment): void {
    if (jump !== undefined) this.#jumped = Math.max(this.#jumped, jump.index)
  }
}

/** A ledger, a clock and a log; desks and streams are added to it. */
export class World {
  readonly ledger = new FakeLedger()
  readonly clock = new FakeClock()
  readonly log = new Log()
  store = memoryStore()
  #streams = 0

  desk(options: Partial<StreamDeskOptions> = {}): StreamDesk {
    const { ledger, clock, log, store } = this
    return new StreamDesk({ store, ledger, clock, logger: log, payee: PAYEE, ...options })
  }

  async stream(length = 1_000, terms: Partial<StreamRecord> = {}, build: { next?: number } = {}): Promise<Payer> {
    const id = createHash('sha256').update(`${this.#streams++}`).update(randomBytes(8)).digest('hex')
    const chain = await PayerChain.build(
      { seed: new Uint8Array(randomBytes(32)), salt: new Uint8Array(randomBytes(16)), length },
      build,
    )
    const payer = new Payer(id, chain)
    this.ledger.add({
      id,
      payer: PAYER,
      payee: PAYEE,
      asset: 'USD',
      anchor: chain.anchor,
      salt: chain.salt,
      checkpointRoot: chain.checkpointRoot,
      length,
      stepValue: STEP,
      escrow: STEP * BigInt(length),
      settled: 0,
      settledElement: chain.anchor,
      lastPulse: 1_000_000,
      state: 'open',
      ...terms,
    })
    return payer
  }
}

export function accepted(verdict: Accepted | Refusal): Accepted {
  if (!verdict.accepted) throw new Error(`refused: ${verdict.code}: ${verdict.reason}`)
  return verdict
}

export function refused(verdict: Accepted | Refusal): Refusal {
  if (verdict.accepted) throw new Error(`accepted up to ${verdict.position}`)
  return verdict
}
