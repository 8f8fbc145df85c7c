import { Command } from 'commander'
import { shortId } from '../../codec/index.js'
import type { Position } from '../../sdk/index.js'
import { readNodeOptions } from '../options.js'
import { printJson, progress, speaker } from '../output.js'
import { parseWhole } from '../serving.js'
import { checkChain, learnTerms, openFiles, ownStream } from './local-stream.js'

/** `sion stream recover ID` */
export function recoverCommand(): Command {
  return new Command('recover')
    .description('Find the position of a stream again whose record was lost: from the ledger, or as you say')
    .argument('<ID>', 'A stream that this machine pays from: its ID or first digits')
    .option('--position <POSITION>', 'Take this many steps as used, as the seller says: if that is not so, they are paid for nothing')
    .action(recover)
}

async function recover(text: string, options: { position?: string }, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const files = await openFiles()
  const secret = await ownStream(files, text, 'ID')
  const { stream, length } = secret
  const own = await files.position(stream).catch((error: unknown): Position => {
    progress(`error: ${error instanceof Error ? error.message : String(error)}`)
    return { used: 0, revealed: 0 }
  })
  let position: Position
  if (options.position === undefined) {
    const { openSession } = await import('../session.js')
    const session = await openSession(nodeOptions)
    checkChain(session, secret)
    const settled = (await learnTerms(session, files, stream))?.settled ?? 0
    position = { used: Math.max(own.used, settled), revealed: Math.max(own.revealed, settled) }
  } else {
    const used = parseWhole(options.position, '--position', 0, length)
    position = { used, revealed: Math.max(used, own.revealed) }
  }
  await files.setPosition(stream, position)
  if (nodeOptions.json) printJson({ revealed_position: position.revealed, stream, used_position: position.used })
  speaker(nodeOptions)(`stream ${shortId(stream)} goes on from position ${position.used + 1}`)
}
