import { join } from 'node:path'
import { Command, Option } from 'commander'
import { InputError } from '../codec/index.js'
import { networkOf } from '../pulse/index.js'
import { nodeOption, readNodeOptions } from './options.js'
import { print, progress } from './output.js'
import { interruption, openStore, parseListen, serverLog, type StoreOptions } from './serving.js'

interface FacilitatorOptions extends StoreOptions {
  listen: string
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
    .option('--data <DIR>', 'Remember settled payments in this folder (default: one for this chain in $SION_HOME)')
    .option('--redis <URL>', 'Remember settled payments in Redis, shared with other facilitators')
    .addHelpText('after', '\nSION_FACILITATOR_KEYS, separated by commas: API keys; askers then need one as `Authorization: Bearer KEY`.')
    .action(run)
}

async function run(options: FacilitatorOptions, command: Command): Promise<void> {
  const { node, chain: pinned } = readNodeOptions(command)
  const listen = parseListen(options.listen)
  const apiKeys = parseKeys(process.env['SION_FACILITATOR_KEYS'])
  const interrupted = interruption()

  const { createLightClient, httpTransport } = await import('../light/index.js')
  const { createNodeClient } = await import('../sdk/index.js')
  const { sionHome } = await import('../sdk/node.js')
  const { createSignaturePool } = await import('../crypto/signature-pool.js')
  const { localFacilitator } = await import('../facilitator/local.js')
  const { startFacilitator } = await import('../facilitator/service.js')

  const transport = httpTransport(node)
  const signatures = createSignaturePool()
  const light = createLightClient({ transport, signatures, ...(pinned === undefined ? {} : { chain: pinned }) })
  const trust = await light.trust()
  if (!trust.pinned) progress(`chain not pinned: the node vouches for itself; pin it with --chain ${trust.chain} or SION_CHAIN`)
  const store = await openStore(options, join(sionHome(), 'facilitator', trust.chain.slice(0, 16)))
  const service = await startFacilitator({
    ...listen,
    facilitator: localFacilitator({ light, node: createNodeClient(transport), signatures, settleWaitSeconds: 20, logger: serverLog }),
    store,
    apiKeys,
    logger: serverLog,
  })
  print(`facilitating exact on ${networkOf(trust.chain)} at ${service.url}`)
  await interrupted
  progress('stopping: answering what is under way')
  await service.stop()
  await signatures.close()
}

function parseKeys(text: string | undefined): string[] {
  if (text === undefined || text === '') return []
  const keys = text.split(',').map((key) => key.trim())
  if (keys.some((key) => !/^\S{16,256}$/.test(key))) {
    throw new InputError('SION_FACILITATOR_KEYS', 'a key has 16 to 256 characters and no spaces')
  }
  return keys
}
