import { Command } from 'commander'
import { parsePositiveUsd, readNodeOptions } from '../options.js'
import { progress } from '../output.js'
import { parseWhole } from '../serving.js'

interface OpenOptions {
  step: string
  length: string
  escrow: string
  pulses: string
}

/** Longer ones take a minute to set up, each time that they are paid from. */
const LONGEST = 100_000_000
const MOST_PULSES = 10_000_000

/** `sion stream open PAYER PAYEE` */
export function openCommand(): Command {
  return new Command('open')
    .description('Open a stream: put money where only PAYEE can collect it, a step at a time, for what it has served')
    .argument('<PAYER>', 'The paying wallet')
    .argument('<PAYEE>', 'Who gets paid (wallet name or account ID)')
    .requiredOption('--step <STEP>', 'What one step pays (USD); a price must be a whole number of steps')
    .requiredOption('--escrow <ESCROW>', 'How much to put in (USD); can be topped up')
    .option('--length <LENGTH>', 'How many steps the stream can ever pay', '100000')
    .option('--pulses <N>', 'Last this many Pulses: what is not settled by then can go back to PAYER', '100000')
    .action(open)
}

async function open(payerName: string, payeeName: string, options: OpenOptions, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const stepValue = parsePositiveUsd(options.step, '--step')
  const escrow = parsePositiveUsd(options.escrow, '--escrow')
  const length = parseWhole(options.length, '--length', 1, LONGEST)
  const pulses = parseWhole(options.pulses, '--pulses', 1, MOST_PULSES)
  const { parseNameOrId, parseWalletName } = await import('../../sdk/node.js')
  parseWalletName(payerName, 'PAYER')
  parseNameOrId(payeeName, 'PAYEE')
  const { openStream } = await import('../../sdk/index.js')
  const { openSession } = await import('../session.js')
  const { actAndPrint } = await import('../transact.js')
  const { openFiles } = await import('./local-stream.js')
  const { chainProgress } = await import('./progress-bar.js')
  const session = await openSession(nodeOptions)
  const wallet = await session.wallet(payerName, 'PAYER')
  const payee = await session.account(payeeName, 'PAYEE')
  const files = await openFiles()
  let stream: string | undefined
  let kept = false
  try {
    const outcome = await actAndPrint(
      session,
      wallet,
      async (hooks) => {
        const opened = await openStream(
          session.ledger,
          wallet,
          { payee, stepValue, escrow, length, pulses },
          { ...hooks, keep: files, onProgress: chainProgress(length) },
        )
        stream = opened.secret.stream
        kept = opened.outcome.kind === 'unknown'
        return opened.outcome
      },
      (shown) => ({ ...shown, stream }),
    )
    if (outcome.kind === 'settled') session.say(`stream ${stream}`)
  } finally {
    if (kept) progress(`what stream ${stream} is paid with is kept, in case that it was opened; sion stream show ${stream?.slice(0, 8)} tells`)
  }
}
