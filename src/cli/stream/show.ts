import { Command } from 'commander'
import { formatUsd, InputError, messageOf, shortId, type Id } from '../../codec/index.js'
import type { Stream } from '../../ledger/index.js'
import { isNodeAway } from '../../light/index.js'
import type { Position, StreamSecret } from '../../sdk/index.js'
import { EXIT, ExitError } from '../exit.js'
import { readNodeOptions, type NodeOptions } from '../options.js'
import { print, printJson, progress } from '../output.js'
import type { Session } from '../session.js'
import { checkChain, nameStream, openFiles } from './local-stream.js'

/** `sion stream list` */
export function listCommand(): Command {
  return new Command('list').description('List the streams that this machine pays from').action(list)
}

/** `sion stream show ID` */
export function showCommand(): Command {
  return new Command('show')
    .description("Show a stream as the ledger proves it, and how far this machine has paid it")
    .argument('<ID>', "The stream's ID; of one that this machine pays from the first digits are enough")
    .action(show)
}

/** Where a stream stands. `ended`: open, and past its last Pulse. `not_opened`: its transaction has not executed yet. */
export type StreamState = 'open' | 'closed' | 'ended' | 'not_opened' | 'never_opened' | 'on_another_chain' | 'unknown'

/** What this machine keeps of a stream, and what the ledger has. */
interface View {
  readonly id: Id
  readonly state: StreamState
  readonly secret: StreamSecret | undefined
  readonly position: Position | undefined
  readonly stream: Stream | undefined
  readonly pulse: number | undefined
}

async function show(text: string, _options: object, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const files = await openFiles()
  const { id, secret } = await nameStream(files, text, 'ID')
  const { openSession } = await import('../session.js')
  const session = await openSession(options)
  if (secret !== undefined) checkChain(session, secret)
  const view = await look(session, id, secret)
  if (view.stream === undefined && secret === undefined) {
    throw new ExitError(EXIT.failed, 'unknown_stream', `the ledger has no stream ${id} at Pulse ${view.pulse}`)
  }
  if (session.json) return printJson(viewJson(view))
  for (const line of viewLines(view, session)) print(line)
}

async function list(_options: object, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const files = await openFiles()
  const ids = await files.list()
  if (ids.length === 0 && !options.json) progress(`no streams in ${files.folder}; open one: sion stream open PAYER PAYEE --step 0.001 --escrow 5`)
  const session = ids.length === 0 ? undefined : await reach(options)
  const views: View[] = []
  for (const id of ids) {
    try {
      const secret = await files.load(id)
      views.push(await look(session, id, secret))
    } catch (error) {
      // One bad file must not hide the others.
      progress(`error: ${messageOf(error)}`)
      process.exitCode = EXIT.failed
    }
  }
  if (options.json) return printJson({ streams: views.map(viewJson) })
  for (const view of views) print(listLine(view, session))
}

/** Without a node there is still what this machine keeps. */
async function reach(options: NodeOptions): Promise<Session | undefined> {
  const { openSession } = await import('../session.js')
  try {
    return await openSession(options)
  } catch (error) {
    if (!isNodeAway(error)) throw error
    progress(`error: ${messageOf(error)}; without the ledger:`)
    process.exitCode = EXIT.failed
    return undefined
  }
}

async function look(session: Session | undefined, id: Id, secret: StreamSecret | undefined): Promise<View> {
  const files = await openFiles()
  const position = secret === undefined ? undefined : await files.position(id)
  const view = { id, secret, position, stream: undefined, pulse: undefined }
  if (session === undefined) return { ...view, state: 'unknown' }
  if (secret !== undefined && secret.chain !== session.trust.chain) return { ...view, state: 'on_another_chain' }
  const { readStream } = await import('../../sdk/index.js')
  const { stream, pulse } = await readStream(session.ledger.client, id)
  if (stream === undefined) return { ...view, pulse, state: secret !== undefined && pulse <= secret.validUntil ? 'not_opened' : 'never_opened' }
  if (secret !== undefined) await files.remember(id, { escrow: stream.escrow, lastPulse: stream.lastPulse })
  const state = stream.closed ? 'closed' : pulse > stream.lastPulse ? 'ended' : 'open'
  return { ...view, stream, pulse, state }
}

function viewJson({ id, state, secret, position, stream, pulse }: View): Record<string, unknown> {
  const about = stream ?? secret
  if (about === undefined) throw new InputError('ID', 'is no stream')
  const { payer, payee, length, stepValue } = about
  const worth = (steps: number): string => formatUsd(BigInt(steps) * stepValue)
  return {
    stream: id,
    state,
    payer,
    payee,
    step: formatUsd(stepValue),
    length,
    pulse: pulse ?? null,
    escrow: stream === undefined ? null : formatUsd(stream.escrow),
    last_pulse: stream?.lastPulse ?? null,
    settled_position: stream?.settled ?? null,
    settled: stream === undefined ? null : worth(stream.settled),
    remaining: stream === undefined ? null : formatUsd(stream.escrow - BigInt(stream.settled) * stepValue),
    used_position: position?.used ?? null,
    revealed_position: position?.revealed ?? null,
    unsettled: position === undefined || stream === undefined ? null : worth(Math.max(0, position.used - stream.settled)),
  }
}

function viewLines({ id, state, position, stream, pulse, secret }: View, { names }: Session): string[] {
  if (stream === undefined || pulse === undefined) {
    const fate = state === 'not_opened' ? `it can be opened until Pulse ${secret?.validUntil}` : 'its transaction can execute no more'
    return [`stream ${id}`, `  the ledger has no such stream at Pulse ${pulse}: ${fate}`]
  }
  const { payer, payee, stepValue, length, escrow, settled, lastPulse } = stream
  const usd = (steps: number): string => formatUsd(BigInt(steps) * stepValue)
  const left = lastPulse - pulse
  const until = left >= 0 ? `until Pulse ${lastPulse} (${left} more)` : `its last Pulse, ${lastPulse}, is over: ${names(payer)} can close it`
  const lines = [
    `stream ${id}`,
    `  ${names(payer)} pays ${names(payee)} ${formatUsd(stepValue)} USD a step, ${length} steps at most`,
    state === 'closed' ? `  closed; nothing more can be paid from it` : `  open at Pulse ${pulse}, ${until}`,
    `  escrow ${formatUsd(escrow)} USD: ${usd(settled)} settled (position ${settled}), ${formatUsd(escrow - BigInt(settled) * stepValue)} ${state === 'closed' ? 'went back' : 'left'}`,
  ]
  if (position !== undefined) {
    lines.push(`  paid from here up to position ${position.used}: ${usd(Math.max(0, position.used - settled))} USD not settled yet`)
  }
  return lines
}

function listLine({ id, state, secret, position, stream }: View, session: Session | undefined): string {
  const payee = secret === undefined ? '' : (session?.names(secret.payee) ?? shortId(secret.payee))
  const used = position?.used ?? 0
  const escrow = stream?.escrow ?? secret?.escrow ?? 0n
  const paid = BigInt(used) * (secret?.stepValue ?? 0n)
  return `${id}  ${state.replaceAll('_', ' ')}, to ${payee}: position ${used} of ${secret?.length}, ${formatUsd(paid)} of ${formatUsd(escrow)} USD paid`
}
