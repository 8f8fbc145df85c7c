import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { bondCommand } from './bond.js'
import { claimCommand } from './claim/index.js'
import { deskCommand } from './desk.js'
import { devnetCommand } from './devnet.js'
import { walletCommand } from './wallet.js'
import { faucetCommand, payCommand } from './pay.js'
import { facilitatorCommand } from './facilitator.js'
import { balanceCommand, receiptCommand, statusCommand } from './read.js'
import { streamCommand } from './stream/index.js'
import { x402Command } from './x402/index.js'

/** One line a family; each builds its commands without loading what they need, so that `sion --help` is quick. */
const families: (() => Command)[] = [
  devnetCommand,
  walletCommand,
  faucetCommand,
  statusCommand,
  balanceCommand,
  payCommand,
  receiptCommand,
  streamCommand,
  claimCommand,
  bondCommand,
  x402Command,
  facilitatorCommand,
  deskCommand,
]

/** The whole command line. It throws `CommanderError` where commander would have ended the process. */
export function buildProgram(): Command {
  const program = new Command('sion')
    .description('Sell and buy HTTP requests with x402 on the sion ledger: wallets, payments, a devnet.')
    .version(version(), '--version', 'Print the version')
    .helpOption('-h, --help', 'Print help')
    .helpCommand('help [command]', 'Print help for a command')
  for (const family of families) program.addCommand(family())
  everyCommand(program, (command) => {
    // Ours is one line, printed once by main.ts.
    command.exitOverride().configureOutput({ outputError: () => {} }).helpOption('-h, --help', 'Print help').allowExcessArguments(false)
  })
  return program
}

function everyCommand(command: Command, change: (command: Command) => void): void {
  change(command)
  for (const inner of command.commands) everyCommand(inner, change)
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const found = typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : undefined
  return typeof found === 'string' ? found : 'unknown'
}
