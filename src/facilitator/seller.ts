import { describe, InputError, isId, messageOf, parseId, SionError, type Id } from '../codec/index.js'
import type { Signatures } from '../crypto/signatures.js'
import { createLightClient, httpTransport } from '../light/index.js'
import { networkOf } from '../pulse/index.js'
import type { DeskStore } from '../desk/index.js'
import { createNodeClient, type Ledger, type Wallet } from '../sdk/index.js'
import { isCode } from '../x402/codes.js'
import { exactSeller } from '../x402/exact/seller.js'
import type { Facilitator } from '../x402/facilitator.js'
import { silent, type Logger } from '../x402/logger.js'
import type { NonceStore } from '../x402/nonce-store.js'
import { createPaywall, type Route, type RouteTerms } from '../x402/paywall.js'
import type { Price } from '../x402/price.js'
import { Replays } from '../x402/replays.js'
import type { SellerScheme } from '../x402/scheme.js'
import type { SupportedResponse } from '../x402/wire.js'
import { remoteStreamSeller } from '../x402/stream/remote-seller.js'
import { streamSeller } from '../x402/stream/seller.js'
import { keepDesk } from './desk-keeper.js'
import { localFacilitator } from './local.js'
import { remoteFacilitator } from './remote.js'

export const DEFAULT_NODE = 'http://127.0.0.1:8730'

export interface SellerOptions {
  /** The account that is paid: 64 hex digits (`sion wallet show NAME` prints it). */
  payTo: Id
  /** What remembers paid quotes. All servers of one seller share one: `sion-x402/stores`. */
  store: NonceStore
  /** The chain identity receipts must verify against. Without it the node, or the facilitator, vouches for itself. */
  chain?: Id
  /** The ledger node that the facilitator in this process asks. Default `http://127.0.0.1:8730`. */
  node?: string
  /** A facilitator service's address, or a facilitator of your own, in place of the one in this process. */
  facilitator?: string | Facilitator
  /** The API key of a facilitator service. */
  facilitatorKey?: string
  /** Public origin for `resource.url`, such as `https://api.example.com`. Never read from a request. */
  origin?: string
  /** How long a settlement may take before the answer is 503 `settlement_pending`. Default 20. */
  settleWaitSeconds?: number
  /**
   * Also take the `stream` scheme: with a desk of this seller's own, or, with a facilitator service that keeps streams,
   * `'facilitator'`.
   */
  streams?: StreamOptions | 'facilitator'
  /**
   * Give a bought answer again, for this many seconds, to whoever comes with the same payment and the same `GET`: its
   * answer was lost on the way. Kept in memory, up to 64 KiB each and 16 MiB in all. Default 0: never.
   */
  replaySeconds?: number
  logger?: Logger
  /** What verifies signatures. Default: whatever of this runtime keeps them off the event loop. */
  signatures?: Pick<Signatures, 'verify'>
}

/** A desk for streams that pay this seller. */
export interface StreamOptions {
  /** Signs settlements and pays their fees. The payee is paid whoever signs. */
  wallet: Wallet
  /** Keeps the tabs, durably: `sion-x402/stores`. All servers of one payee share one. */
  store: DeskStore
  /** Steps that clients may pay out of order, and so concurrently; 0 for strict positions. Default 0. */
  window?: number
  /** Pulses that a stream must still last. Default 10. */
  margin?: number
  /** Settle once a stream has this many unsettled steps. Default 1000. */
  settleEvery?: number
  /** Settle a stream's payments at the latest this many seconds after the first unsettled one. Default 30. */
  settleAfterSeconds?: number
  /** What a server was answering counts as served when it was silent for this long; while it lives it says so. Default 30. */
  leaseSeconds?: number
}

/** What the runtime's entry point verifies with, and closes with the seller. */
export interface Verifier extends Pick<Signatures, 'verify'> {
  close?(): Promise<void>
}

/** A seller: priced routes for an adapter to translate. */
export interface Seller {
  /** @throws InputError for a fixed price that is none. */
  route<R>(terms: Price | RouteTerms<R>): Route<R>
  ready(): Promise<void>
  close(): Promise<void>
}

const KNOWN = new Set([
  'payTo',
  'store',
  'chain',
  'node',
  'facilitator',
  'facilitatorKey',
  'origin',
  'settleWaitSeconds',
  'streams',
  'replaySeconds',
  'logger',
  'signatures',
])

/**
 * Puts a seller together from its options, all of them checked now and not at the first request.
 * @throws InputError naming the option.
 */
export function createSeller(options: SellerOptions, signatures: () => Verifier): Seller {
  if (typeof options !== 'object' || options === null) throw new InputError('options', `expected an object, not ${describe(options)}`)
  for (const name of Object.keys(options)) if (!KNOWN.has(name)) throw new InputError(name, 'not an option of a paywall')
  const { store, logger = silent, settleWaitSeconds = 20, replaySeconds = 0 } = options
  const payee = parseId(options.payTo, 'payTo')
  const pinned = options.chain === undefined ? undefined : parseId(options.chain, 'chain')
  const origin = options.origin === undefined ? undefined : parseOrigin(options.origin)
  if (typeof store?.claim !== 'function') throw new InputError('store', `expected a store of sion-x402/stores, not ${describe(store)}`)
  if (typeof settleWaitSeconds !== 'number' || !(settleWaitSeconds > 0 && settleWaitSeconds <= 60)) {
    throw new InputError('settleWaitSeconds', `expected seconds up to 60, not ${String(settleWaitSeconds)}`)
  }
  if (!(replaySeconds >= 0 && replaySeconds <= 3_600)) {
    throw new InputError('replaySeconds', `expected seconds from 0 to 3600, not ${replaySeconds}`)
  }

  let own: Verifier | undefined
  let reached: ReachedLedger | undefined
  const verifier = (): Pick<Signatures, 'verify'> => options.signatures ?? (own ??= signatures())
  const ledger = (): ReachedLedger => (reached ??= reachLedger(options.node ?? DEFAULT_NODE, pinned, verifier()))
  const facilitator = facilitatorOf(options, ledger, settleWaitSeconds, logger)
  const chain = chainOf(facilitator, pinned)
  const streams = streamsOf(options, payee, facilitator, ledger, logger)
  const exact = exactSeller({ payee, facilitator, store, now: Date.now })
  const paywall = createPaywall({
    chain,
    schemes: streams === undefined ? [exact] : [exact, streams.scheme],
    ...(origin === undefined ? {} : { origin }),
    ...(replaySeconds === 0 ? {} : { replays: new Replays(replaySeconds, Date.now) }),
    logger,
  })
  streams?.start()
  return {
    route: (terms) => paywall.route(terms),
    async ready() {
      const network = networkOf(await chain())
      await checkSupport(facilitator, 'exact', network)
      if (options.streams === 'facilitator') await checkSupport(facilitator, 'stream', network)
      await store.secret()
      await streams?.ready()
    },
    async close() {
      await streams?.stop()
      await Promise.all([store.close(), own?.close?.()])
    },
  }
}

interface ReachedLedger extends Ledger {
  readonly signatures: Pick<Signatures, 'verify'>
}

function reachLedger(node: string, chain: Id | undefined, signatures: Pick<Signatures, 'verify'>): ReachedLedger {
  const transport = httpTransport(node)
  return { client: createLightClient({ transport, chain, signatures }), node: createNodeClient(transport), signatures }
}

function facilitatorOf(
  { facilitator, facilitatorKey }: SellerOptions,
  ledger: () => ReachedLedger,
  settleWaitSeconds: number,
  logger: Logger,
): Facilitator {
  if (typeof facilitator === 'string') {
    // A second more than what it is given to settle, so that its own `settlement_pending` arrives.
    return remoteFacilitator({ url: facilitator, apiKey: facilitatorKey, timeoutMs: (settleWaitSeconds + 1) * 1_000 })
  }
  if (facilitator !== undefined) {
    if (typeof facilitator?.settle === 'function') return facilitator
    throw new InputError('facilitator', `expected its address, or a facilitator, not ${describe(facilitator)}`)
  }
  const { client, node, signatures } = ledger()
  return localFacilitator({ light: client, node, signatures, settleWaitSeconds, logger })
}

interface SellerStreams {
  readonly scheme: SellerScheme
  ready(): Promise<void>
  start(): void
  stop(): Promise<void>
}

function streamsOf(
  { streams }: SellerOptions,
  payee: Id,
  facilitator: Facilitator,
  ledger: () => ReachedLedger,
  logger: Logger,
): SellerStreams | undefined {
  if (streams === undefined) return undefined
  if (streams !== 'facilitator' && (typeof streams !== 'object' || streams === null)) {
    throw new InputError('streams', `expected { wallet, store, … } or 'facilitator', not ${describe(streams)}`)
  }
  if (streams === 'facilitator') {
    return { scheme: remoteStreamSeller({ payee, facilitator }), async ready() {}, start() {}, async stop() {} }
  }
  const keeper = keepDesk({ ...streams, payee, ledger: ledger(), logger })
  const { desk, offer } = keeper
  return {
    scheme: streamSeller({ payee, desk, ...offer }),
    ready: () => keeper.ready(),
    start: () => keeper.start(),
    stop: () => keeper.stop(),
  }
}

/** The chain to be paid on: the pinned one, else what the facilitator settles on, asked for until it answers once. */
function chainOf(facilitator: Facilitator, pinned: Id | undefined): () => Promise<Id> {
  let known = pinned === undefined ? undefined : Promise.resolve(pinned)
  return () => {
    known ??= chainOfFacilitator(facilitator).catch((error: unknown) => {
      known = undefined
      throw error
    })
    return known
  }
}

async function chainOfFacilitator(facilitator: Facilitator): Promise<Id> {
  const { kinds } = await supportedBy(facilitator)
  const kind = kinds.find(({ scheme, network }) => scheme === 'exact' && typeof network === 'string' && network.startsWith('sion:'))
  if (isId(kind?.extra?.['chain'])) return kind.extra['chain']
  throw new SionError('invalid_network', `the facilitator does not settle exact on a sion network, but ${offered(kinds)}`)
}

async function checkSupport(facilitator: Facilitator, wanted: string, network: string): Promise<void> {
  const { kinds } = await supportedBy(facilitator)
  if (kinds.some((kind) => kind.scheme === wanted && kind.network === network)) return
  throw new SionError('invalid_network', `the facilitator does not settle ${wanted} on ${network}, but ${offered(kinds)}`)
}

function offered(kinds: SupportedResponse['kinds']): string {
  return kinds.map((kind) => `${kind.scheme} on ${kind.network}`).join(', ') || 'nothing'
}

async function supportedBy(facilitator: Facilitator): ReturnType<Facilitator['supported']> {
  try {
    return await facilitator.supported()
  } catch (cause) {
    if (cause instanceof SionError && isCode(cause.code)) throw cause
    throw new SionError('ledger_unavailable', `the ledger cannot be used: ${messageOf(cause)}`, { cause })
  }
}

function parseOrigin(text: string): string {
  try {
    const url = new URL(text)
    if ((url.protocol === 'http:' || url.protocol === 'https:') && url.origin === text.replace(/\/$/, '')) return url.origin
  } catch {
    // Falls through to the one refusal below.
  }
  throw new InputError('origin', `expected an origin such as https://api.example.com, not ${JSON.stringify(text)}`)
}
