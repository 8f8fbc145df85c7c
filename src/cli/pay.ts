import { Command } from 'commander'
import { parsePositiveUsd, readNodeOptions, withNodeOptions } from './options.js'

/** `sion pay FROM TO AMOUNT` */
export function payCommand(): Command {
  return withNodeOptions(
    new Command('pay')
      .description('Pay USD from a wallet, and verify the receipt')
      .argument('<from>', 'The paying wallet')
      .argument('<to>', 'Who gets paid (wallet name or account ID)')
      .argument('<amount>', 'USD, such as 1.5')
      .option('--purpose <text>', 'What for; anyone can read it on the ledger'),
  ).action(pay)
}

/** `sion faucet NAME AMOUNT` */
export function faucetCommand(): Command {
  return withNodeOptions(
    new Command('faucet')
      .description('Have a devnet pay USD to an account')
      .argument('<name>', 'Who gets paid (wallet name or account ID)')
      .argument('<amount>', 'USD, such as 100'),
  ).action(faucet)
}

async function pay(from: string, to: string, amountText: string, options: { purpose?: string }, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const amount = parsePositiveUsd(amountText, 'amount')
  const { parseNameOrId, parseWalletName } = await import('../sdk/node.js')
  const { parsePurpose } = await import('../sdk/index.js')
  const purpose = parsePurpose(options.purpose ?? '', '--purpose')
  parseWalletName(from, 'from')
  parseNameOrId(to, 'to')
  const { openSession } = await import('./session.js')
  const { signAndPrint } = await import('./transact.js')
  const session = await openSession(nodeOptions)
  const wallet = await session.wallet(from, 'from')
  const payee = await session.account(to, 'to')
  await signAndPrint(session, wallet, { kind: 'transfer', to: payee, amount, purpose })
}

async function faucet(name: string, amountText: string, _options: object, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const amount = parsePositiveUsd(amountText, 'amount')
  const { parseNameOrId } = await import('../sdk/node.js')
  parseNameOrId(name, 'name')
  const { openSession } = await import('./session.js')
  const { waitAndPrint } = await import('./transact.js')
  const session = await openSession(nodeOptions)
  const account = await session.account(name, 'name')
  await waitAndPrint(session, await session.ledger.node.faucet(account, amount))
}
