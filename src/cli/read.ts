import { Command, Option } from 'commander'
import { formatUsd, parseId } from '../codec/index.js'
import type { StatusJson } from '../light/index.js'
import { EXIT, ExitError } from './exit.js'
import { parseSeconds, readNodeOptions, withNodeOptions } from './options.js'
import { print, printJson } from './output.js'

/** `sion status` */
export function statusCommand(): Command {
  return withNodeOptions(new Command('status').description('Show what a node says of its chain')).action(status)
}

/** `sion balance NAME` */
export function balanceCommand(): Command {
  return withNodeOptions(
    new Command('balance').description("Show an account's balance, proven by a light client").argument('<name>', 'Wallet name or account ID'),
  ).action(balance)
}

/** `sion receipt DIGEST` */
export function receiptCommand(): Command {
  return withNodeOptions(
    new Command('receipt')
      .description("Fetch a transaction's receipt and verify it as a light client")
      .argument('<digest>', 'Transaction digest')
      .addOption(new Option('--wait <seconds>', 'Wait this long for the transaction to execute').default('0', '0')),
  ).action(receipt)
}

async function status(_options: object, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const { openSession } = await import('./session.js')
  const session = await openSession(options)
  const status = await session.ledger.node.status()
  const { chain } = session.trust
  if (status.chain !== chain) {
    throw new ExitError(EXIT.failed, 'wrong_chain', `the node's status is of chain ${status.chain}, its genesis of ${chain}`)
  }
  if (options.json) return printJson(status)
  for (const line of statusLines(status)) print(line)
}

function statusLines(status: StatusJson): string[] {
  const executed = status.executed.reduce((sum, shard) => sum + shard, 0)
  return [
    `chain ${status.chain} (${JSON.stringify(status.chain_id).slice(1, -1)})`,
    `network sion:${status.chain.slice(0, 32)}`,
    `Pulse ${status.pulse}, certified ${status.certified_pulse}, round ${status.round}${status.active ? '' : '; the chain has halted'}`,
    `${status.active_validators} of ${status.validators} validators active`,
    `${status.objects} objects, ${executed} transactions executed, ${status.claims} claims`,
    `forced intents: ${status.forced_pending} pending, ${status.forced_overdue} overdue`,
  ]
}

async function balance(nameOrId: string, _options: object, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const { openSession } = await import('./session.js')
  const { parseNameOrId } = await import('../sdk/node.js')
  parseNameOrId(nameOrId, 'name')
  const { balanceJson, provenAccount } = await import('../sdk/index.js')
  const session = await openSession(options)
  const account = await session.account(nameOrId, 'name')
  const { account: proven, pulse } = await provenAccount(session.ledger.client, account)
  if (options.json) return printJson(balanceJson(account, proven.balance, pulse))
  print(`${session.names(account)} has ${formatUsd(proven.balance)} USD at Pulse ${pulse}`)
  print(`  account ${account}`)
}

async function receipt(digestText: string, raw: { wait: string }, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const digest = parseId(digestText, 'digest')
  const waitSeconds = parseSeconds(raw.wait, '--wait', 600)
  const { openSession } = await import('./session.js')
  const { noReceipt } = await import('./transact.js')
  const { verifiedReceiptJson, waitForReceipt } = await import('../sdk/index.js')
  const { receiptSentence } = await import('../ledger/index.js')
  const session = await openSession(options)
  const verified = await waitForReceipt(session.ledger.client, digest, { waitSeconds })
  if (verified === undefined) throw noReceipt(digest)
  if (options.json) return printJson(verifiedReceiptJson(verified, session.names))
  print(`Pulse ${verified.receipt.pulse}: ${receiptSentence(verified.receipt, session.names)}`)
  print(`  digest ${digest}`)
  const { signed, quorum, total } = verified.certificate
  print(`  verified: ${signed} of ${total} stake signed (quorum ${quorum}), chain ${verified.chain}${verified.pinned ? '' : ' (not pinned)'}`)
}
