import { Command } from 'commander'
import { formatUsd, InputError } from '../codec/index.js'
import { EXIT, ExitError } from './exit.js'
import { parsePositiveUsd, readNodeOptions, withNodeOptions } from './options.js'
import { print, printJson } from './output.js'

/** `sion bond …`: money that its owner's claims rest on. */
export function bondCommand(): Command {
  const bond = new Command('bond').description('Put money where your claims can rest on it, and take it back when none does')
  for (const command of [depositCommand, withdrawCommand, showCommand]) bond.addCommand(withNodeOptions(command()))
  return bond
}

function depositCommand(): Command {
  return new Command('deposit')
    .description('Put money into a bond, which begins with the first deposit')
    .argument('<OWNER>', 'The wallet that it comes from')
    .argument('<LABEL>', "Which of the owner's bonds, such as audit")
    .argument('<AMOUNT>', 'USD')
    .action((owner: string, label: string, amount: string, _options: object, command: Command) => change('deposit', owner, label, amount, command))
}

function withdrawCommand(): Command {
  return new Command('withdraw')
    .description('Take money back from a bond that no claim rests on any more')
    .argument('<OWNER>', 'The wallet that put it in')
    .argument('<LABEL>', "Which of the owner's bonds")
    .argument('<AMOUNT>', 'USD')
    .action((owner: string, label: string, amount: string, _options: object, command: Command) => change('withdraw', owner, label, amount, command))
}

function showCommand(): Command {
  return new Command('show')
    .description('Show a bond as the ledger proves it')
    .argument('<OWNER>', 'Whose (wallet name or account ID)')
    .argument('<LABEL>', 'Which of them')
    .action(show)
}

async function change(direction: 'deposit' | 'withdraw', ownerName: string, label: string, amountText: string, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const amount = parsePositiveUsd(amountText, 'AMOUNT')
  await checkLabel(label)
  const { depositBond, withdrawBond } = await import('../sdk/index.js')
  const { parseWalletName } = await import('../sdk/node.js')
  parseWalletName(ownerName, 'OWNER')
  const { openSession } = await import('./session.js')
  const { actAndPrint } = await import('./transact.js')
  const session = await openSession(nodeOptions)
  const wallet = await session.wallet(ownerName, 'OWNER')
  const act = direction === 'deposit' ? depositBond : withdrawBond
  await actAndPrint(session, wallet, (hooks) => act(session.ledger, wallet, { label, amount }, hooks))
}

async function show(ownerName: string, label: string, _options: object, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  await checkLabel(label)
  const { bondJson, readBond } = await import('../sdk/index.js')
  const { parseNameOrId } = await import('../sdk/node.js')
  parseNameOrId(ownerName, 'OWNER')
  const { openSession } = await import('./session.js')
  const session = await openSession(options)
  const owner = await session.account(ownerName, 'OWNER')
  const { bond, pulse } = await readBond(session.ledger.client, owner, label)
  if (bond === undefined) throw new ExitError(EXIT.failed, 'unknown_bond', `${session.names(owner)} has no bond ${label} at Pulse ${pulse}`)
  const json = bondJson(bond, pulse)
  if (session.json) return printJson(json)
  print(`bond ${label} of ${session.names(owner)} holds ${json.amount} USD at Pulse ${pulse}, ${json.reserved} USD of it reserved`)
  print(pulse <= bond.heldUntil ? `  claims rest on it until Pulse ${bond.heldUntil}` : `  no claim rests on it: ${formatUsd(bond.amount - bond.reserved)} USD can be taken back`)
  print(`  atom ${json.id}`)
}

async function checkLabel(label: string): Promise<void> {
  const { MAX_LABEL_BYTES } = await import('../ledger/index.js')
  const { parseText } = await import('../sdk/index.js')
  if (parseText(label, 'LABEL', MAX_LABEL_BYTES) === '') throw new InputError('LABEL', 'expected a label, such as audit')
}
