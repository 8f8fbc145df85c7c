import { Command } from 'commander'
import { withNodeOptions } from '../options.js'
import { assessCommand } from './assess.js'
import { issueCommand } from './issue.js'
import { logCommand } from './log.js'
import { showCommand } from './show.js'

/** `sion claim …`: statements on record, and what it would cost to have a false one believed. */
export function claimCommand(): Command {
  const claim = new Command('claim').description('Put claims on record, and see what it would cost to corrupt them before relying on one')
  for (const command of [issueCommand, showCommand, assessCommand, logCommand]) claim.addCommand(withNodeOptions(command()))
  return claim
}
