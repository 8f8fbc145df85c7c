import { Command } from 'commander'
import { withNodeOptions } from '../options.js'
import { closeCommand, settleCommand, topUpCommand } from './change.js'
import { openCommand } from './open.js'
import { recoverCommand } from './recover.js'
import { listCommand, showCommand } from './show.js'

/** `sion stream …`: escrow that a seller collects a step at a time, with one hash for each request. */
export function streamCommand(): Command {
  const stream = new Command('stream').description('Open streams, which pay a seller with one hash for each request, and look after them')
  for (const command of [openCommand, listCommand, showCommand, topUpCommand, settleCommand, closeCommand, recoverCommand]) {
    stream.addCommand(withNodeOptions(command()))
  }
  return stream
}
