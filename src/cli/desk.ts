import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { Command } from 'commander'
import { formatUsd, InputError, parseId, quote, shortId, type Id } from '../codec/index.js'
import type { SettleReport, StreamDesk, TabStatus } from '../desk/index.js'
import { EXIT, ExitError } from './exit.js'
import { readNodeOptions, withNodeOptions } from './options.js'
import { print, printJson } from './output.js'
import { openTabs, sellerName, serverLog, storePlace, TABS_FOLDER, type StoreOptions } from './serving.js'
import type { Session } from './session.js'
import type { Wallet } from '../sdk/index.js'

/** `sion desk …`: what a seller's stream desk has sold and not settled yet. */
export function deskCommand(): Command {
  return new Command('desk')
    .description("Look into a seller's stream desk, or settle what it holds; also while its server runs")
    .addCommand(
      onStore('status', 'Show what each stream was sold, settled, and has unsettled').action((payTo: string, options: StoreOptions, command: Command) =>
        withKeptDesk(payTo, options, command, showStatus),
      ),
    )
    .addCommand(
      onStore('settle', 'Settle now whatever is unsettled')
        .argument('[STREAM...]', 'Only these streams (IDs)')
        .action((payTo: string, streams: string[], options: StoreOptions, command: Command) =>
          withKeptDesk(payTo, options, command, (desk) => settle(desk, streams)),
        ),
    )
    .addCommand(
      onStore('close', 'Take no more payments from a stream, settle it, and close it: the rest goes back to its payer')
        .argument('<STREAM>', 'The stream (ID)')
        .action((payTo: string, stream: string, options: StoreOptions, command: Command) =>
          withDesk(payTo, options, command, (desk) => close(desk, stream)),
        ),
    )
    .addCommand(
      onStore('export', 'Print what would settle each stream now, as JSON: whoever has it can settle, for the payee').action(
        (payTo: string, options: StoreOptions, command: Command) => withKeptDesk(payTo, options, command, exportPlans),
      ),
    )
}

function onStore(name: string, description: string): Command {
  return withNodeOptions(
    new Command(name)
      .description(description)
      .argument('<PAY_TO>', 'Whose desk (wallet name; its wallet pays the fee of settling)')
      .option('--data <DIR>', 'The folder its server keeps (default: one for this payee and chain in $SION_HOME)')
      .option('--redis <URL>', 'The Redis its servers share'),
  )
}

interface OpenDesk {
  readonly session: Session
  /** The payee's. */
  readonly wallet: Wallet
  readonly keeper: import('../facilitator/desk-keeper.js').DeskKeeper
  /** The folder in which no server has kept a desk before. */
  readonly emptyFolder: string | undefined
}

/** {@link withDesk}, for who would rather hear of a wrong folder than that there is nothing in it. */
function withKeptDesk(payTo: string, options: StoreOptions, command: Command, work: (desk: OpenDesk) => Promise<void>): Promise<void> {
  return withDesk(payTo, options, command, async (desk) => {
    if (desk.emptyFolder === undefined) return work(desk)
    throw new InputError('--data', `no server has sold streams of ${payTo} from ${quote(desk.emptyFolder, 200)}`)
  })
}

async function withDesk(payTo: string, options: StoreOptions, command: Command, work: (desk: OpenDesk) => Promise<void>): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const { openSession } = await import('./session.js')
  const session = await openSession(nodeOptions)
  const wallet = await session.wallet(payTo, 'PAY_TO')
  const name = sellerName(wallet.account, session.trust.chain)
  const { sionHome } = await import('../sdk/node.js')
  const { keepDesk } = await import('../facilitator/desk-keeper.js')
  const place = storePlace(options, join(sionHome(), 'serve', name))
  const emptyFolder = 'redis' in place || holdsTabs(place.folder) ? undefined : place.folder
  const store = await openTabs(place, name)
  try {
    // Not started: nothing here accepts payments or settles by itself.
    await work({ session, wallet, emptyFolder, keeper: keepDesk({ ledger: session.ledger, wallet, store, payee: wallet.account, logger: serverLog }) })
  } finally {
    await store.close()
  }
}

function holdsTabs(folder: string): boolean {
  return existsSync(join(folder, TABS_FOLDER))
}

interface Row extends TabStatus {
  /** Micro-USD a step, from the ledger; undefined where it does not answer for the stream. */
  readonly stepValue: bigint | undefined
}

async function showStatus({ session, keeper }: OpenDesk): Promise<void> {
  const rows: Row[] = []
  for await (const status of keeper.desk.statuses()) {
    const found = await keeper.desk.ledger.readStream(status.stream)
    rows.push({ ...status, stepValue: found?.stream.stepValue })
  }
  const unsettled = rows.reduce((sum, row) => sum + BigInt(row.unsettled) * (row.stepValue ?? 0n), 0n)
  if (session.json) {
    printJson({
      streams: rows.map(({ stepValue, oldestUnsettledAt, ...row }) => ({
        ...row,
        oldestUnsettledAt: oldestUnsettledAt ?? null,
        unsettledUsd: stepValue === undefined ? null : formatUsd(BigInt(row.unsettled) * stepValue),
      })),
      unsettledUsd: formatUsd(unsettled),
    })
    return
  }
  for (const { stream, sold, settled, unsettled: steps, inFlight, stepValue, closing } of rows) {
    const worth = stepValue === undefined ? 'of unknown value' : `${formatUsd(BigInt(steps) * stepValue)} USD`
    const flying = inFlight === 0 ? '' : `, ${inFlight} being answered`
    print(`stream ${stream}  sold ${sold}  settled ${settled}  unsettled ${steps} (${worth})${flying}${closing ? ', closing' : ''}`)
  }
  print(`${rows.length} streams, ${formatUsd(unsettled)} USD unsettled`)
}

/** Longer than what a server that died was answering is left to it (`sion x402 serve`), or a stream it was settling. */
const PATIENCE_MS = 15_000
const LOOK_AGAIN_MS = 500

async function settle({ session, keeper }: OpenDesk, streams: readonly string[]): Promise<void> {
  const only = streams.length === 0 ? undefined : streams.map((stream) => parseId(stream, 'STREAM'))
  const soldBefore = new Map<Id, number>()
  for await (const { stream, sold } of keeper.desk.statuses()) soldBefore.set(stream, sold)
  const total = { problems: [] as SettleReport['problems'], settledSteps: 0, settledStreams: 0, transactions: 0 }
  let left: Leftover | undefined
  for (const giveUpAt = performance.now() + PATIENCE_MS; ; await pause(LOOK_AGAIN_MS)) {
    const { transactions, problems } = await keeper.settler.settleAll(only)
    total.problems = problems
    total.transactions += transactions.length
    for (const { steps, streams: all, refused } of transactions) {
      total.settledSteps += steps
      total.settledStreams += all - refused
    }
    left = await leftOver(keeper.desk, soldBefore, only)
    if (left === undefined || problems.length > 0 || performance.now() > giveUpAt) break
  }
  if (session.json) printJson(total)
  else print(`settled ${total.settledSteps} steps of ${total.settledStreams} streams in ${total.transactions} transactions`)
  const [first] = total.problems
  if (first !== undefined) {
    throw new ExitError(EXIT.refused, 'not_settled', `${total.problems.length} streams were not settled; ${shortId(first.stream)}: ${first.reason}`)
  }
  if (left !== undefined) {
    const { stream, steps, inFlight } = left
    const why = inFlight === 0 ? 'a server is settling it' : `${inFlight} are being answered; if their server died they count as served in a while`
    throw new ExitError(EXIT.refused, 'not_settled', `stream ${shortId(stream)} has ${steps} unsettled steps left: ${why}; try again`)
  }
}

interface Leftover {
  readonly stream: Id
  readonly steps: number
  readonly inFlight: number
}

/** What was sold before and is not settled now. A server that runs meanwhile sells more, or takes back what it could not serve. */
async function leftOver(desk: StreamDesk, soldBefore: ReadonlyMap<Id, number>, only: readonly Id[] | undefined): Promise<Leftover | undefined> {
  for await (const { stream, sold, settled, inFlight } of desk.statuses()) {
    const steps = Math.min(sold, soldBefore.get(stream) ?? 0) - settled
    if (steps > 0 && only?.includes(stream) !== false) return { stream, steps, inFlight }
  }
  return undefined
}

async function close({ session, wallet, keeper }: OpenDesk, text: string): Promise<void> {
  const stream = parseId(text, 'STREAM')
  const { desk, settler } = keeper
  const { signAndPrint } = await import('./transact.js')
  if ((await desk.status(stream)) !== undefined) {
    // In this order: what is accepted after the settlement could not be collected any more.
    await desk.beginClosing(stream)
    const { problems } = await settler.settleAll([stream])
    const [problem] = problems
    const status = await desk.status(stream)
    if (problem !== undefined || (status?.unsettled ?? 0) > 0) {
      const why = problem?.reason ?? `${status?.inFlight ?? 0} requests are being answered`
      throw new ExitError(EXIT.refused, 'not_settled', `the stream takes no more payments and is not closed: ${why}. Try again`)
    }
  }
  // The tab stays, closing: a server that has not heard of it yet must not begin another.
  await signAndPrint(session, wallet, { kind: 'closeStream', stream })
}

async function exportPlans({ keeper }: OpenDesk): Promise<void> {
  const { toHex } = await import('../codec/index.js')
  const claims: object[] = []
  for await (const { stream } of keeper.desk.statuses()) {
    const plan = await keeper.desk.plan(stream)
    if (plan === undefined) continue
    const { position, element, jump } = plan.item
    claims.push({
      stream,
      position,
      element: toHex(element),
      ...(jump === undefined ? {} : { jump: { index: jump.index, path: jump.path.map((node) => toHex(node)) } }),
    })
  }
  printJson({ claims })
}
