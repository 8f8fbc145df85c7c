import { Command } from 'commander'
import { formatUsd, InputError, parseUsd, shortId } from '../../codec/index.js'
import { EXIT, ExitError } from '../exit.js'
import { readNodeOptions } from '../options.js'
import { parseWhole } from '../serving.js'
import { checkChain, learnTerms, nameStream, openFiles, ownStream, walletFor } from './local-stream.js'

const ID = "The stream's ID; of one that this machine pays from the first digits are enough"
const MOST_PULSES = 10_000_000

/** `sion stream top-up ID AMOUNT` */
export function topUpCommand(): Command {
  return new Command('top-up')
    .description('Put more money into a stream, or let it last longer')
    .argument('<ID>', ID)
    .argument('<AMOUNT>', 'USD to add; 0 with --pulses to add only time')
    .option('--pulses <N>', 'Let it last this many Pulses from now, if that is longer than it does')
    .option('--wallet <WALLET>', "The payer's wallet (default: the one that opened it)")
    .action(topUp)
}

/** `sion stream settle ID [POSITION]` */
export function settleCommand(): Command {
  return new Command('settle')
    .description('Have the ledger pay the payee what was paid from this machine; the payee does that too: sion desk settle')
    .argument('<ID>', 'A stream that this machine pays from: its ID or first digits')
    .argument('[POSITION]', 'Up to here (default: as far as it was paid)')
    .option('--wallet <WALLET>', 'The wallet that pays the fee (default: the one that opened it)')
    .action(settle)
}

/** `sion stream close ID` */
export function closeCommand(): Command {
  return new Command('close')
    .description('End a stream: what is not settled goes back to its payer. The payee at any time, the payer after its last Pulse')
    .argument('<ID>', ID)
    .option('--wallet <WALLET>', "The payer's or the payee's wallet (default: the one that opened it)")
    .action(close)
}

async function topUp(text: string, amountText: string, options: { pulses?: string; wallet?: string }, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const amount = parseUsd(amountText, 'AMOUNT')
  const pulses = options.pulses === undefined ? undefined : parseWhole(options.pulses, '--pulses', 1, MOST_PULSES)
  if (amount === 0n && pulses === undefined) throw new InputError('AMOUNT', 'expected more than 0 USD, or --pulses')
  const files = await openFiles()
  const { id, secret } = await nameStream(files, text, 'ID')
  const { topUpStream } = await import('../../sdk/index.js')
  const { openSession } = await import('../session.js')
  const { actAndPrint } = await import('../transact.js')
  const session = await openSession(nodeOptions)
  if (secret !== undefined) checkChain(session, secret)
  const wallet = await walletFor(session, options.wallet, secret)
  const outcome = await actAndPrint(
    session,
    wallet,
    (hooks) => topUpStream(session.ledger, wallet, { stream: id, amount, ...(pulses === undefined ? {} : { pulses }) }, hooks),
    (shown) => ({ ...shown, stream: id }),
  )
  if (outcome.kind === 'settled' && secret !== undefined) await learnTerms(session, files, id)
}

async function settle(text: string, positionText: string | undefined, options: { wallet?: string }, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const files = await openFiles()
  const secret = await ownStream(files, text, 'ID')
  const { used, revealed } = await files.position(secret.stream)
  // Further would pay for what nobody has been served.
  const position = positionText === undefined ? used : parseWhole(positionText, 'POSITION', 1, revealed)
  const { claimOf, PayerChain, readStream, settleStream } = await import('../../sdk/index.js')
  const { openSession } = await import('../session.js')
  const { actAndPrint } = await import('../transact.js')
  const { chainProgress } = await import('./progress-bar.js')
  const session = await openSession(nodeOptions)
  checkChain(session, secret)
  const { stream } = await readStream(session.ledger.client, secret.stream)
  if (stream === undefined) throw new ExitError(EXIT.failed, 'unknown_stream', `the ledger has no stream ${secret.stream}`)
  if (position <= stream.settled) {
    throw new ExitError(EXIT.notSent, 'already_settled', `nothing to settle: stream ${shortId(secret.stream)} is settled up to position ${stream.settled}, and ${position} is not beyond it`)
  }
  const wallet = await walletFor(session, options.wallet, secret)
  const elements = await PayerChain.build(secret, { next: position, onProgress: chainProgress(secret.length) })
  const claim = claimOf(secret.stream, elements, position, stream.settled)
  await actAndPrint(session, wallet, (hooks) => settleStream(session.ledger, wallet, claim, hooks), (shown) => ({ ...shown, position, stream: secret.stream }))
}

async function close(text: string, options: { wallet?: string }, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const files = await openFiles()
  const { id, secret } = await nameStream(files, text, 'ID')
  const { closeStream, readStream } = await import('../../sdk/index.js')
  const { openSession } = await import('../session.js')
  const { actAndPrint } = await import('../transact.js')
  const session = await openSession(nodeOptions)
  if (secret !== undefined) checkChain(session, secret)
  const { stream, pulse } = await readStream(session.ledger.client, id)
  if (stream === undefined) throw new ExitError(EXIT.failed, 'unknown_stream', `the ledger has no stream ${id} at Pulse ${pulse}`)
  if (stream.closed) {
    if (secret !== undefined) await files.forget(id)
    const refund = formatUsd(stream.escrow - BigInt(stream.settled) * stream.stepValue)
    throw new ExitError(EXIT.notSent, 'stream_closed', `stream ${shortId(id)} is closed already: ${refund} USD went back to ${session.names(stream.payer)}`)
  }
  const wallet = await walletFor(session, options.wallet, secret)
  // The next Pulse is the earliest in which it can execute.
  if (wallet.account === stream.payer && pulse < stream.lastPulse) {
    throw new ExitError(
      EXIT.notSent,
      'stream_not_ended',
      `${session.names(stream.payer)} pays stream ${shortId(id)} and can close it after its last Pulse, ${stream.lastPulse}; it is Pulse ${pulse}. ${session.names(stream.payee)} can close it now`,
    )
  }
  const outcome = await actAndPrint(session, wallet, (hooks) => closeStream(session.ledger, wallet, id, hooks), (shown) => ({ ...shown, stream: id }))
  if (outcome.kind === 'settled' && secret !== undefined) await files.forget(id)
}
