import { join } from 'node:path'
import { Command, Option } from 'commander'
import { InputError } from '../codec/index.js'
import type { DeskStore } from '../desk/index.js'
import { networkOf } from '../pulse/index.js'
import type { Wallet } from '../sdk/index.js'
import type { Facilitator } from '../x402/facilitator.js'
import { nodeOption, readNodeOptions } from './options.js'
import { print, progress } from './output.js'
import type { Session } from './session.js'
import { checkStore, interruption, openNonces, openTabs, parseListen, parseWhole, serverLog, storePlace, type StoreOptions } from './serving.js'

interface FacilitatorOptions extends StoreOptions {
  listen: string
  streams?: string
  settleEvery: string
  settleAfter: string
  window: string
}

/** `sion facilitator`: x402's verify and settle for sellers in any language, until Ctrl-C. */
export function facilitatorCommand(): Command {
  return new Command('facilitator')
    .description('Verify and settle x402 payments for resource servers, holding nobody’s keys and no money')
    .option('--listen <LISTEN>', 'Listen address', '127.0.0.1:8405')
    .addOption(nodeOption())
    .addOption(
      new Option('--chain <CHAIN>', 'The chain identity receipts must verify against. Without it the node vouches for itself').env('SION_CHAIN'),
    )
    .option('--streams <WALLET>', 'Also keep the streams of any seller and settle them, this wallet paying the fees of that')
    .option('--settle-every <N>', 'With --streams: settle once a stream has this many unsettled steps', '1000')
    .option('--settle-after <SECONDS>', 'With --streams: settle at the latest this long after the first unsettled payment', '30')
    .option('--window <N>', 'With --streams: let a client pay this many steps out of order, and so concurrently', '0')
    .option('--data <DIR>', 'Remember settled payments in this folder (default: one for this chain in $SION_HOME)')
    .option('--redis <URL>', 'Remember settled payments in Redis, shared with other facilitators')
    .addHelpText('after', '\nSION_FACILITATOR_KEYS, separated by commas: API keys; askers then need one as `Authorization: Bearer KEY`.')
    .action(run)
}

async function run(options: FacilitatorOptions, command: Command): Promise<void> {
  const { node, chain: pinned } = readNodeOptions(command)
  const listen = parseListen(options.listen)
  const apiKeys = parseKeys(process.env['SION_FACILITATOR_KEYS'])
  checkStore(options)
  const settling = {
    settleEvery: parseWhole(options.settleEvery, '--settle-every', 1, 1_000_000_000),
    settleAfterSeconds: parseWhole(options.settleAfter, '--settle-after', 1, 86_400),
    window: parseWhole(options.window, '--window', 0, 4_096),
  }
  const interrupted = interruption()

  const { openSession } = await import('./session.js')
  const { sionHome } = await import('../sdk/node.js')
  const { createSignaturePool } = await import('../crypto/signature-pool.js')
  const { localFacilitator } = await import('../facilitator/local.js')
  const { startFacilitator } = await import('../facilitator/service.js')

  const signatures = createSignaturePool()
  const session = await openSession({ node, json: false, ...(pinned === undefined ? {} : { chain: pinned }) }, signatures)
  const { chain } = session.trust
  const { client, node: submitter } = session.ledger
  const place = storePlace(options, join(sionHome(), 'facilitator', chain.slice(0, 16)))
  const exact = localFacilitator({ light: client, node: submitter, signatures, settleWaitSeconds: 20, logger: serverLog })
  const streams =
    options.streams === undefined
      ? undefined
      : await keepStreams(session, await session.wallet(options.streams, '--streams'), await openTabs(place, `facilitator-${chain.slice(0, 16)}`), settling)
  const { bothSchemes } = await import('../facilitator/streams.js')
  const service = await startFacilitator({
    ...listen,
    facilitator: streams === undefined ? exact : bothSchemes(exact, streams.facilitator),
    store: await openNonces(place),
    apiKeys,
    logger: serverLog,
  })
  print(`facilitating ${streams === undefined ? 'exact' : 'exact and stream'} on ${networkOf(chain)} at ${service.url}`)
  await interrupted
  progress('stopping: answering what is under way, settling what is not')
  await service.stop()
  await streams?.stop()
  await signatures.close()
}

async function keepStreams(
  session: Session,
  wallet: Wallet,
  store: DeskStore,
  settling: { settleEvery: number; settleAfterSeconds: number; window: number },
): Promise<{ facilitator: Facilitator; stop(): Promise<void> }> {
  const { keepDesk } = await import('../facilitator/desk-keeper.js')
  const { streamFacilitator } = await import('../facilitator/streams.js')
  const keeper = keepDesk({ ledger: session.ledger, wallet, store, logger: serverLog, ...settling })
  const facilitator = streamFacilitator({ desk: keeper.desk, chain: async () => session.trust.chain, ...keeper.offer })
  await keeper.ready()
  keeper.start()
  return {
    facilitator,
    async stop() {
      await facilitator.stop()
      await keeper.stop()
    },
  }
}

function parseKeys(text: string | undefined): string[] {
  if (text === undefined || text === '') return []
  const keys = text.split(',').map((key) => key.trim())
  if (keys.some((key) => !/^\S{16,256}$/.test(key))) {
    throw new InputError('SION_FACILITATOR_KEYS', 'a key has 16 to 256 characters and no spaces')
  }
  return keys
}
