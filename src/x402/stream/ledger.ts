import { SionError, type Id } from '../../codec/index.js'
import type { SettleItem, SettleOutcome, SettleResult, StreamLedger, StreamRecord } from '../../desk/index.js'
import type { LedgerEvent, Stream, StreamClaim } from '../../ledger/index.js'
import { isNodeAway, LightClientError } from '../../light/index.js'
import { transact, type Ledger, type Wallet } from '../../sdk/index.js'

/**
 * The desk's view of the ledger: streams proven by the light client, settlements signed by `wallet`, which pays their
 * fees and nothing else. Payees are paid whoever signs.
 *
 * @throws (from its methods) SionError `ledger_unavailable`: nothing is known to have happened; ask again.
 */
export function streamLedger(ledger: Ledger, wallet: Wallet): StreamLedger {
  return {
    async readStream(stream) {
      const { object, header } = await reached(ledger.client.object(stream))
      return object?.kind === 'stream' ? { stream: recordOf(stream, object), pulse: header.header.number } : undefined
    },

    async currentPulse() {
      return (await reached(ledger.client.latest())).header.number
    },

    async settle(items): Promise<SettleOutcome> {
      const outcome = await reached(transact(ledger, wallet, { kind: 'settleStreams', claims: items.map(claimOf) }))
      if (outcome.kind === 'refused') {
        throw new SionError('ledger_unavailable', `the ledger does not take the settlement: ${outcome.reason}`)
      }
      if (outcome.kind === 'unknown') throw new SionError('ledger_unavailable', `not known what became of a settlement: ${outcome.reason}`)
      const { receipt } = outcome.receipt
      if (receipt.outcome.kind === 'failed') {
        const { reason } = receipt.outcome
        return { pulse: receipt.pulse, results: items.map(({ stream }) => ({ stream, refused: { code: 'failed', reason } })) }
      }
      return { pulse: receipt.pulse, results: receipt.events.flatMap(resultOf) }
    },
  }
}

function claimOf({ stream, position, element, jump }: SettleItem): StreamClaim {
  return { stream, position, element, ...(jump === undefined ? {} : { jump: { index: jump.index, path: [...jump.path] } }) }
}

function resultOf(event: LedgerEvent): SettleResult[] {
  if (event.kind === 'StreamSettled') return [{ stream: event.stream, settled: event.position }]
  if (event.kind !== 'StreamClaimRefused') return []
  return [{ stream: event.stream, refused: { code: event.code, reason: event.reason } }]
}

function recordOf(id: Id, { closed, kind: _, ...stream }: Stream): StreamRecord {
  return { ...stream, id, asset: 'USD', state: closed ? 'closed' : 'open' }
}

async function reached<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (cause) {
    if (!(cause instanceof SionError)) throw cause
    const why = isNodeAway(cause) || !(cause instanceof LightClientError) ? 'the ledger is out of reach' : `the node is not to be believed (${cause.code})`
    throw new SionError('ledger_unavailable', `${why}: ${cause.message}`, { cause })
  }
}
