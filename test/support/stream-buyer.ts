import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Id } from '../../src/codec/index.js'
import { randomBytes } from '../../src/crypto/runtime.js'
import { memoryStore } from '../../src/desk/index.js'
import type { StreamOptions } from '../../src/facilitator/seller.js'
import { createLightClient, httpTransport } from '../../src/light/index.js'
import { createNodeClient, openStream, walletFromSeed, type Ledger, type LedgerSays, type StreamPayer, type Wallet } from '../../src/sdk/index.js'
import { openStreamFiles, type StreamFiles } from '../../src/sdk/node.js'
import type { Market } from './market.js'

/** A buyer with files of its own, and the streams that it opens on a market's ledger. */
export interface StreamBuyer {
  readonly home: string
  readonly files: StreamFiles
  readonly wallet: Wallet
  readonly ledger: Ledger
  /** Opens a stream to `payee`. Money in micro-USD. */
  open(payee: Id, terms?: { stepValue?: bigint; length?: number; escrow?: bigint; pulses?: number }): Promise<Id>
  /** Takes the stream; closed with the market. */
  payer(stream: Id, refresh?: () => Promise<LedgerSays | undefined>): Promise<StreamPayer>
}

export async function streamBuyer(market: Market): Promise<StreamBuyer> {
  const home = await mkdtemp(join(tmpdir(), 'sion-buyer-'))
  market.defer(() => rm(home, { recursive: true, force: true }))
  const transport = httpTransport(market.node.url)
  const ledger: Ledger = { client: createLightClient({ transport, chain: market.node.chain }), node: createNodeClient(transport) }
  const files = openStreamFiles(home)
  const wallet = await market.buyer('1000')
  return {
    home,
    files,
    wallet,
    ledger,
    async open(payee, { stepValue = 1_000n, length = 1_000, escrow = stepValue * BigInt(length), pulses = 10_000 } = {}) {
      const { outcome, secret } = await openStream(ledger, wallet, { payee, stepValue, length, escrow, pulses }, { keep: files })
      if (outcome.kind !== 'settled') throw new Error(`the stream was not opened: ${JSON.stringify(outcome, (_, value) => (typeof value === 'bigint' ? String(value) : value))}`)
      return secret.stream
    },
    async payer(stream, refresh) {
      const payer = await files.openPayer(stream, { refresh })
      market.defer(() => payer.close())
      return payer
    },
  }
}

/** A seller's streams: tabs in memory, settlements signed by a wallet of their own. */
export async function sellerStreams(market: Market, more: Partial<StreamOptions> = {}): Promise<StreamOptions> {
  const wallet = walletFromSeed(randomBytes(32))
  await market.api.fund(wallet.account, '10')
  return { wallet, store: memoryStore(), ...more }
}
