import type { Id } from '../codec/index.js'
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
  readonly logger: Logger
}

/** A desk with its settler: what starts and stops together. */
export interface DeskKeeper {
  readonly desk: StreamDesk
  readonly settler: Settler
  readonly offer: StreamOffer
  start(): void
  /** Settles what is left and closes the store. Call when no request is under way any more. */
  stop(): Promise<void>
}

/** @throws InputError naming an option that is out of its limits. */
export function keepDesk(options: DeskKeeperOptions): DeskKeeper {
  const { ledger, wallet, store, payee, logger, window = 0, margin = 10, settleEvery, settleAfterSeconds } = options
  const desk = new StreamDesk({
    store,
    ledger: streamLedger(ledger, wallet),
    window,
    margin,
    ...(payee === undefined ? {} : { payee }),
    ...(settleEvery === undefined ? {} : { settleEvery }),
    ...(settleAfterSeconds === undefined ? {} : { settleAfterSeconds }),
    logger: {
      info: (_, line) => logger.info(line),
      warn: (_, line) => logger.warn(line),
      error: (_, line) => logger.error(line),
    },
  })
  const settler = new Settler({ desk })
  return {
    desk,
    settler,
    offer: { margin, window },
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
