import { join } from 'node:path'
import { Command, Option } from 'commander'
import { formatUsd, InputError, quote, shortId, type Id } from '../../codec/index.js'
import { networkOf } from '../../pulse/index.js'
import { nodeOption, readNodeOptions } from '../options.js'
import { print, progress } from '../output.js'
import { interruption, openStore, parseListen, serverLog, type StoreOptions } from '../serving.js'

interface ServeOptions extends StoreOptions {
  listen: string
  path: string
  price: string
  body: string
  facilitator?: string
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
    .option('--data <DIR>', 'Remember paid quotes in this folder (default: one for this payee and chain in $SION_HOME)')
    .option('--redis <URL>', 'Remember paid quotes in Redis, shared with other servers of this payee')
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
  const interrupted = interruption()

  const { openSession } = await import('../session.js')
  const session = await openSession({ node, json: false, ...(pinned === undefined ? {} : { chain: pinned }) })
  const payee = await session.account(payTo, 'PAY_TO')
  const { chain } = session.trust
  const store = await openStore(options, await dataFolder(payee, chain))
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
      store,
      logger: serverLog,
      ...(options.facilitator === undefined ? {} : { facilitator: options.facilitator }),
      ...(process.env['SION_FACILITATOR_KEY'] === undefined ? {} : { facilitatorKey: process.env['SION_FACILITATOR_KEY'] }),
    },
  })
  print(`selling ${server.url}${options.path} at ${formatUsd(price)} USD per request, paid to ${shortId(payee)} on ${networkOf(chain)}`)
  await interrupted
  progress('stopping: answering what is under way')
  await server.stop()
}

async function dataFolder(payee: Id, chain: Id): Promise<string> {
  const { sionHome } = await import('../../sdk/node.js')
  return join(sionHome(), 'serve', `${payee.slice(0, 16)}-${chain.slice(0, 16)}`)
}

function checkPath(path: string): void {
  if (!/^\/[A-Za-z0-9._~!$&'()*+,;=:@/-]*$/.test(path) || path.includes('//')) {
    throw new InputError('--path', `expected a path such as /v1/resource, not ${quote(path, 80)}`)
  }
}
