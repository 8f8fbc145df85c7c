import type { Accepted, Refusal, StreamDesk } from '../../../src/desk/index.js'
import { SionError } from '../../../src/codec/index.js'
import { StreamPayer, type Position, type PositionLog, type StreamPayerOptions, type StreamPayment } from '../../../src/sdk/index.js'
import { PAYEE, PAYER, STEP, World, type Payer } from '../../desk/world.js'

/** A position log in memory, which a power cut can set back. */
export class MemoryLog implements PositionLog {
  written: Position[] = []
  closed = false

  async write(position: Position): Promise<void> {
    this.written.push(position)
  }

  async close(): Promise<void> {
    this.closed = true
  }

  get last(): Position {
    return this.written.at(-1) ?? { used: 0, revealed: 0 }
  }
}

/** A payer of a stream of the desk's test world. */
export function payerOf({ id, chain }: Payer, options: Partial<StreamPayerOptions> & { escrow?: bigint } = {}): StreamPayer {
  const { escrow = STEP * BigInt(chain.length), ...more } = options
  return new StreamPayer({
    terms: { stream: id, chain: 'cc'.repeat(32), payer: PAYER, payee: PAYEE, stepValue: STEP, escrow },
    elements: chain,
    position: { used: 0, revealed: 0 },
    log: new MemoryLog(),
    ...more,
  })
}

export interface Bought {
  readonly position: number
  readonly refusals: Refusal[]
}

/** What becomes of a call on its way. */
export type Fault = 'none' | 'handler fails' | 'request lost' | 'answer lost'

/** One call as payingFetch makes it: pays, goes where a refusal says, once, and pays again. */
export async function buy(payer: StreamPayer, desk: StreamDesk, options: { steps?: number; window?: number; fault?: Fault; served?: (ticket: Accepted) => void } = {}): Promise<Bought> {
  const { steps = 1, window = 0, fault = 'none', served } = options
  const refusals: Refusal[] = []
  let payment = await payer.pay({ steps, window })
  for (;;) {
    const verdict = fault === 'request lost' ? undefined : await desk.accept(asWire(payment), STEP * BigInt(steps))
    if (verdict === undefined) {
      payment.lost()
      throw new SionError('lost', 'the request was lost')
    }
    if (!verdict.accepted) {
      refusals.push(verdict)
      if (verdict.position === undefined || refusals.length > 1) {
        payment.returned()
        throw new SionError(verdict.code, verdict.reason)
      }
      payment = await payment.retried({ ...verdict, position: verdict.position }, { steps, window })
      continue
    }
    await new Promise((resolve) => setImmediate(resolve))
    if (fault === 'handler fails') {
      await verdict.fail()
      payment.returned()
      throw new SionError('failed', 'the handler failed')
    }
    verdict.finish()
    served?.(verdict)
    if (fault === 'answer lost') {
      payment.lost()
      throw new SionError('lost', 'the answer was lost')
    }
    payment.accepted()
    return { position: payment.position, refusals }
  }
}

function asWire({ stream, position, value, jump, window }: StreamPayment): Parameters<StreamDesk['accept']>[0] {
  return { stream, position, value, ...(jump === undefined ? {} : { jump }), ...(window === undefined ? {} : { window }) }
}

export { PAYEE, PAYER, STEP, World }
