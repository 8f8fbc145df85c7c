import { Command } from 'commander'
import { InputError, quote } from '../codec/index.js'
import { DEFAULT_NODE } from './options.js'
import { print } from './output.js'
import { interruption, parseListen, serverLog } from './serving.js'

interface DevnetOptions {
  data?: string
  listen: string
  validators?: string
  stopValidator: string[]
}

/** `sion devnet`: a ledger of one's own, until Ctrl-C. */
export function devnetCommand(): Command {
  return new Command('devnet')
    .description('Run a ledger on this machine, with its validators and a faucet, until Ctrl-C')
    .option('--data <dir>', 'Keep the chain in this folder. Without it the chain is gone at the end')
    .option('--listen <host:port>', 'Listen address', '127.0.0.1:8730')
    .option('--validators <n>', 'How many validators a new chain has, 1 to 32 (default: 4)')
    .option('--stop-validator <i>', 'Leave this validator stopped, counted from 0; may be given several times', collect, [])
    .action(run)
}

async function run(options: DevnetOptions): Promise<void> {
  const listen = parseListen(options.listen)
  const validators = options.validators === undefined ? undefined : parseNumber(options.validators, '--validators')
  const stopped = options.stopValidator.map((text) => parseNumber(text, '--stop-validator'))
  if (options.data === '') throw new InputError('--data', 'expected a folder')
  const interrupted = interruption()
  const { startNode } = await import('../node/index.js')
  const node = await startNode({
    listen,
    stopped,
    ...(options.data === undefined ? {} : { dataFolder: options.data }),
    ...(validators === undefined ? {} : { validators }),
    logger: serverLog,
  }).catch(nameTheFlag)
  const at = node.url === DEFAULT_NODE ? '' : ` --node ${node.url}`
  print(`devnet of ${node.validators} validators, ${options.data === undefined ? 'gone at the end' : `kept in ${options.data}`}; Ctrl-C ends it`)
  print(`  chain    ${node.chain}`)
  print(`  network  ${node.network}`)
  print(`  API      ${node.url}`)
  print('Next, in another terminal:')
  print(`  export SION_CHAIN=${node.chain}`)
  print(`  sion faucet dana 10${at}`)
  await interrupted
  await node.stop()
}

function collect(text: string, before: string[]): string[] {
  return [...before, text]
}

function parseNumber(text: string, flag: string): number {
  if (!/^(0|[1-9][0-9]{0,5})$/.test(text)) throw new InputError(flag, `expected a whole number, not ${quote(text)}`)
  return Number(text)
}

const flags = new Map([
  ['validators', '--validators'],
  ['stopped', '--stop-validator'],
])

/** What the node found wrong with an option, under the option's name here. */
function nameTheFlag(error: unknown): never {
  const flag = error instanceof InputError ? flags.get(error.field) : undefined
  if (!(error instanceof InputError) || flag === undefined) throw error
  throw new InputError(flag, error.message.slice(error.field.length + 2), { cause: error })
}
