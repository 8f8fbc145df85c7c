import { InputError, messageOf, parseId, SionError, type Id } from '../codec/index.js'
import type { Signatures } from '../crypto/signatures.js'
import { createLightClient, httpTransport } from '../light/index.js'
import { networkOf } from '../pulse/index.js'
import { createNodeClient } from '../sdk/node-client.js'
import { isCode } from '../x402/codes.js'
import { exactSeller } from '../x402/exact/seller.js'
import type { Facilitator } from '../x402/facilitator.js'
import { silent, type Logger } from '../x402/logger.js'
import type { NonceStore } from '../x402/nonce-store.js'
import { createPaywall, type Route, type RouteTerms } from '../x402/paywall.js'
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
  logger?: Logger
  /** What verifies signatures. Default: whatever of this runtime keeps them off the event loop. */
  signatures?: Pick<Signatures, 'verify'>
}

/** What the runtime's entry point verifies with, and closes with the seller. */
export interface Verifier extends Pick<Signatures, 'verify'> {
  close?(): Promise<void>
}

/** A seller: priced routes for an adapter to translate. */
export interface Seller {
  /** @throws InputError for a fixed price that is none. */
  route<R>(terms: RouteTerms<R>): Route<R>
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
  'logger',
  'signatures',
])

/**
 * Puts a seller together from its options, all of them checked now and not at the first request.
 * @throws InputError naming the option.
 */
export function createSeller(options: SellerOptions, signatures: () => Verifier): Seller {
  for (const name of Object.keys(options)) if (!KNOWN.has(name)) throw new InputError(name, 'not an option of a paywall')
  const { store, logger = silent, settleWaitSeconds = 20 } = options
  const payee = parseId(options.payTo, 'payTo')
  const pinned = options.chain === undefined ? undefined : parseId(options.chain, 'chain')
  const origin = options.origin === undefined ? undefined : parseOrigin(options.origin)
  if (typeof store !== 'object' || store === null) throw new InputError('store', 'expected a store of sion-x402/stores')
  if (!(settleWaitSeconds > 0 && settleWaitSeconds <= 60)) {
    throw new InputError('settleWaitSeconds', `expected seconds up to 60, not ${settleWaitSeconds}`)
  }

  let own: Verifier | undefined
  const verifier = (): Pick<Signatures, 'verify'> => options.signatures ?? (own ??= signatures())
  const facilitator = facilitatorOf(options, pinned, settleWaitSeconds, logger, verifier)
  const chain = chainOf(facilitator, pinned)
  const paywall = createPaywall({
    chain,
    schemes: [exactSeller({ payee, facilitator, store, now: Date.now })],
    ...(origin === undefined ? {} : { origin }),
    logger,
  })
  return {
    route: (terms) => paywall.route(terms),
    async ready() {
      await checkSupport(facilitator, networkOf(await chain()))
      await store.secret()
    },
    async close() {
      await Promise.all([store.close(), own?.close?.()])
    },
  }
}

function facilitatorOf(
  options: SellerOptions,
  chain: Id | undefined,
  settleWaitSeconds: number,
  logger: Logger,
  signatures: () => Pick<Signatures, 'verify'>,
): Facilitator {
  const { facilitator, facilitatorKey, node = DEFAULT_NODE } = options
  if (typeof facilitator === 'object') return facilitator
  if (typeof facilitator === 'string') return remoteFacilitator({ url: facilitator, apiKey: facilitatorKey })
  const transport = httpTransport(node)
  const verifier = signatures()
  return localFacilitator({
    light: createLightClient({ transport, chain, signatures: verifier }),
    node: createNodeClient(transport),
    signatures: verifier,
    settleWaitSeconds,
    logger,
  })
}

/** The chain to be paid on: the pinned one, else what the facilitator settles on, asked for until it answers once. */
function chainOf(facilitator: Facilitator, pinned: Id | undefined): () => Promise<Id> {
  let known = pinned
  return async () => {
    if (known !== undefined) return known
    const { kinds } = await supportedBy(facilitator)
    const kind = kinds.find(({ scheme, network }) => scheme === 'exact' && network.startsWith('sion:'))
    known = parseId(kind?.extra?.['chain'], 'the facilitator’s chain')
    return known
  }
}

async function checkSupport(facilitator: Facilitator, network: string): Promise<void> {
  const { kinds } = await supportedBy(facilitator)
  if (kinds.some((kind) => kind.scheme === 'exact' && kind.network === network)) return
  const offered = kinds.map((kind) => `${kind.scheme} on ${kind.network}`).join(', ')
  throw new SionError('invalid_network', `the facilitator does not settle exact on ${network}, but ${offered || 'nothing'}`)
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
