import { Command } from 'commander'
import { parseId } from '../../codec/index.js'
import { readNodeOptions } from '../options.js'
import { print, printJson } from '../output.js'

/** `sion claim show CLAIM` */
export function showCommand(): Command {
  return new Command('show').description('Show a claim as the ledger proves it, with the atoms that it rests on').argument('<CLAIM>', "The claim's ID").action(show)
}

async function show(text: string, _options: object, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const id = parseId(text, 'CLAIM')
  const { claimJson, readClaim } = await import('../../sdk/index.js')
  const { openSession } = await import('../session.js')
  const session = await openSession(options)
  const json = claimJson(await readClaim(session.ledger.client, id), session.names)
  if (session.json) return printJson(json)
  print(`claim ${json.claim}`)
  print(`  “${json.subject}” (${json.schema}), by ${session.names(json.issuer)} in Pulse ${json.issued}, at place ${json.log_index} of the knowledge log`)
  print(json.status === 'Active' ? `  holds until Pulse ${json.last_pulse}; it is Pulse ${json.pulse}` : `  held until Pulse ${json.last_pulse}; it is Pulse ${json.pulse}`)
  print(`  rests on ${json.formula}; a falsehood is found out in ${json.detection_permille} of 1000 cases`)
  if (json.adjudicator !== null) print(`  judged by ${json.adjudicator}`)
  for (const { atom, id: atomId } of json.atoms) print(`  atom ${atomId} ${atom}`)
}
