import { Command } from 'commander'
import { readNodeOptions } from '../options.js'
import { print, printJson } from '../output.js'
import { parseWhole } from '../serving.js'

/** `sion claim log` */
export function logCommand(): Command {
  return new Command('log')
    .description('List claims of the knowledge log, proven, and check that it only grew since this machine last looked')
    .option('--from <PLACE>', 'Begin at this place; the first claim is at 0')
    .option('--limit <N>', 'At most this many claims: the last ones, where --from is not given', '20')
    .action(log)
}

async function log(raw: { from?: string; limit: string }, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const limit = parseWhole(raw.limit, '--limit', 1, 500)
  const asked = raw.from === undefined ? undefined : parseWhole(raw.from, '--from', 0, 9_999_999_999)
  const { claimJson, readClaim } = await import('../../sdk/index.js')
  const { openKnowledgeMemory, sionHome } = await import('../../sdk/node.js')
  const { openSession } = await import('../session.js')
  const session = await openSession(options)
  const { client } = session.ledger
  const { chain } = session.trust
  const memory = openKnowledgeMemory(sionHome())
  const seen = await memory.load(chain)
  const from = asked ?? Math.max(0, (await client.latest()).header.knowledgeSize - limit)
  const { claims, header } = await client.knowledge({ from, limit, seen })
  const { number: pulse, knowledgeRoot: root, knowledgeSize: size } = header.header
  await memory.save(chain, { size, root })
  const shown = []
  for (const { claim } of claims) shown.push(claimJson(await readClaim(client, claim), session.names))
  if (session.json) return printJson({ claims: shown, pulse, root, seen_size: seen?.size ?? null, size })
  print(`knowledge log of Pulse ${pulse}: ${size} ${size === 1 ? 'claim' : 'claims'}, root ${root}`)
  if (seen !== undefined) print(`  it begins with the ${seen.size} seen before ✓`)
  for (const { log_index: place, claim, subject, schema, issuer, status } of shown) {
    print(`${place}  ${claim}  ${session.names(issuer)}: “${subject}” (${schema})${status === 'Active' ? '' : ', expired'}`)
  }
}
