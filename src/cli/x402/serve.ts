import { join } from 'node:path'
import { Command, Option } from 'commander'
import { formatUsd, InputError, isId, quote, shortId } from '../../codec/index.js'
import type { StreamOptions } from '../../facilitator/seller.js'
import { networkOf } from '../../pulse/index.js'
import type { Session } from '../session.js'
import { nodeOption, parseNodeUrl, readNodeOptions } from '../options.js'
import { print, progress } from '../output.js'
import { checkStore, interruption, openNonces, openTabs, parseListen, parseWhole, sellerName, serverLog, storePlace, type StoreOptions, type StorePlace } from '../serving.js'

/** What this command answers is at hand: a server that is silent for so long has died. */
const LEASE_SECONDS = 10

interface ServeOptions extends StoreOptions {
  listen: string
  path: string
  price: string
  body: string
  facilitator?: string
  streams?: boolean
  settleEvery: string
  settleAfter: string
  window: string
}

/** `sion x402 serve PAY_TO` */
export function serveCommand(): Command {
  return new Command('serve')
    .description('Serve one resource for a price per request, paid to PAY_TO')
    .argument('<PAY_TO>', 'Who gets paid (wallet name or account ID)')
    .option('--listen <LISTEN>', 'Listen address', '127.0.0.1:8402')
    .addOption(nodeOption())
    .option('--path <PATH>', "The resource's path", '/v1/resource')
    .option('--price <PRICE>', 'Price per request (USD)', '0.25')
    .option('--body <BODY>', 'What every paid request returns', '{"paid":true}')
    .addOption(
      new Option('--chain <CHAIN>', 'The chain identity receipts must verify against. Without it the node vouches for itself').env('SION_CHAIN'),
    )
    .option('--streams', "Also accept payments from streams (scheme `stream`), settled by PAY_TO's wallet, which must be a wallet name")
    .option('--settle-every <SETTLE_EVERY>', 'With --streams: settle once a stream has this many unsettled steps', '1000')
    .option(
      '--settle-after <SETTLE_AFTER>',
      "With --streams: settle a stream's payments at the latest this many seconds after the first unsettled one",
      '30',
    )
    .option('--window <N>', 'With --streams: let a client pay this many steps out of order, and so concurrently', '0')
    .option('--data <DIR>', 'Remember paid quotes and streams in this folder (default: one for this payee and chain in $SION_HOME)')
    .option('--redis <URL>', 'Remember paid quotes and streams in Redis, shared with other servers of this payee')
    .addOption(
      new Option('--facilitator <URL>', 'Have this facilitator settle. Default: in this process; its API key comes from SION_FACILITATOR_KEY'),
    )
    .action(serve)
}

async function serve(payTo: string, options: ServeOptions, command: Command): Promise<void> {
  const { node, chain: pinned } = readNodeOptions(command)
  const listen = parseListen(options.listen)
  const { parsePrice } = await import('../../x402/price.js')
  const price = parsePrice(options.price, '--price')
  checkPath(options.path)
  checkStore(options)
  const { parseNameOrId, sionHome } = await import('../../sdk/node.js')
  parseNameOrId(payTo, 'PAY_TO')
  if (options.facilitator !== undefined) parseNodeUrl(options.facilitator, '--facilitator')
  const settleEvery = parseWhole(options.settleEvery, '--settle-every', 1, 1_000_000_000)
  const settleAfterSeconds = parseWhole(options.settleAfter, '--settle-after', 1, 86_400)
  const window = parseWhole(options.window, '--window', 0, 4_096)
  if (options.streams === true && isId(payTo)) {
    throw new InputError('PAY_TO', 'with --streams expected a wallet name: its wallet settles the streams')
  }
  const interrupted = interruption()

  const { openSession } = await import('../session.js')
  const session = await openSession({ node, json: false, ...(pinned === undefined ? {} : { chain: pinned }) })
  const payee = await session.account(payTo, 'PAY_TO')
  const { chain } = session.trust
  const name = sellerName(payee, chain)
  const place = storePlace(options, join(sionHome(), 'serve', name))
  const streams = options.streams === true ? await streamOptions(session, payTo, place, name) : undefined
  const { startResourceServer } = await import('./resource-server.js')
  const server = await startResourceServer({
    ...listen,
    path: options.path,
    price: options.price,
    body: options.body,
    seller: {
      payTo: payee,
      chain,
      node,
      store: await openNonces(place),
      logger: serverLog,
      ...(streams === undefined ? {} : { streams: { ...streams, settleEvery, settleAfterSeconds, window, leaseSeconds: LEASE_SECONDS } }),
      ...(options.facilitator === undefined ? {} : { facilitator: options.facilitator }),
      ...(process.env['SION_FACILITATOR_KEY'] === undefined ? {} : { facilitatorKey: process.env['SION_FACILITATOR_KEY'] }),
    },
  })
  const how = streams === undefined ? '' : ' (exact transfers, or streams settled in batches)'
  print(`selling ${server.url}${options.path} at ${formatUsd(price)} USD per request, paid to ${shortId(payee)} on ${networkOf(chain)}${how}`)
  await interrupted
  progress('stopping: answering what is under way, settling what is not')
  await server.stop()
}

async function streamOptions(session: Session, payTo: string, place: StorePlace, name: string): Promise<StreamOptions> {
  return { wallet: await session.wallet(payTo, 'PAY_TO'), store: await openTabs(place, name) }
}

function checkPath(path: string): void {
  if (!/^\/[A-Za-z0-9._~!$&'()*+,;=:@/-]*$/.test(path) || path.includes('//')) {
    throw new InputError('--path', `expected a path such as /v1/resource, not ${quote(path, 80)}`)
  }
}
