import { describe, InputError, type Id } from '../codec/index.js'
import { Settler, StreamDesk, type DeskStore } from '../desk/index.js'
import type { Ledger, Wallet } from '../sdk/index.js'
import type { Logger } from '../x402/logger.js'
import { streamLedger } from '../x402/stream/ledger.js'
import type { StreamOffer } from '../x402/stream/terms.js'

export interface DeskKeeperOptions {
  readonly ledger: Ledger
  /** Signs settlements and pays their fees. */
  readonly wallet: Wallet
  readonly store: DeskStore
  /** Who is paid; absent in a facilitator, whose desk serves many. */
  readonly payee?: Id
  readonly window?: number
  readonly margin?: number
  readonly settleEvery?: number
  readonly settleAfterSeconds?: number
  readonly leaseSeconds?: number
  readonly logger: Logger
}

const KNOWN = new Set('ledger wallet store payee window margin settleEvery settleAfterSeconds leaseSeconds logger'.split(' '))

/** A server that dies while it settles keeps others from that stream for so long; settling one twice costs a fee, no more. */
const SETTLING_LEASE_SECONDS = 10

/** A desk with its settler: what starts and stops together. */
export interface DeskKeeper {
  readonly desk: StreamDesk
  readonly settler: Settler
  readonly offer: StreamOffer
  /** Resolves when the store can be used; rejects with why it cannot: out of reach, or written by a newer version. */
  ready(): Promise<void>
  start(): void
  /** Settles what is left and closes the store. Call when no request is under way any more. */
  stop(): Promise<void>
}

/** @throws InputError naming an option that is unknown or out of its limits. */
export function keepDesk(options: DeskKeeperOptions): DeskKeeper {
  for (const name of Object.keys(options)) if (!KNOWN.has(name)) throw new InputError(`streams.${name}`, 'not an option of a desk for streams')
  const { ledger, wallet, store, payee, logger, window = 0, margin = 10, settleEvery, settleAfterSeconds, leaseSeconds } = options
  if (typeof store?.swap !== 'function') throw new InputError('streams.store', `expected a store of sion-x402/stores, not ${describe(store)}`)
  if (typeof wallet?.account !== 'string') throw new InputError('streams.wallet', `expected a wallet, not ${describe(wallet)}`)
  const desk = new StreamDesk({
    store,
    ledger: streamLedger(ledger, wallet),
    window,
    margin,
    ...(payee === undefined ? {} : { payee }),
    ...(settleEvery === undefined ? {} : { settleEvery }),
    ...(settleAfterSeconds === undefined ? {} : { settleAfterSeconds }),
    ...(leaseSeconds === undefined ? {} : { leaseSeconds }),
    logger: {
      info: (_, line) => logger.info(line),
      warn: (_, line) => logger.warn(line),
      error: (_, line) => logger.error(line),
    },
  })
  const settler = new Settler({ desk, leaseSeconds: SETTLING_LEASE_SECONDS })
  return {
    desk,
    settler,
    offer: { margin, window },
    async ready() {
      // Nothing is due before time began; the store looks at its format first.
      await store.due({ at: -1, pulse: -1 }, 1)
    },
    start() {
      desk.start()
      settler.start()
    },
    async stop() {
      await desk.stop().catch((error: unknown) => logger.error(`the desk could not write what it had: ${String(error)}`))
      await settler.stop()
      await store.close()
    },
  }
}
