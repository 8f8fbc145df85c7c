import { Command, Option } from 'commander'
import { formatUsd, InputError, parseId, parseUsd, quote, type Id, type MicroUsd } from '../../codec/index.js'
import { EXIT } from '../exit.js'
import { parsePositiveUsd, readNodeOptions } from '../options.js'
import { print, printJson } from '../output.js'

interface AssessOptions {
  value: string
  kappa: string
  distrust: string[]
  attackCost: string[]
}

/** `sion claim assess CLAIM --value USD` */
export function assessCommand(): Command {
  const collect = (value: string, before: string[]): string[] => [...before, value]
  return new Command('assess')
    .description('Whether to rely on a claim: what it costs to corrupt it, against what you would lose. Exit code 4 where not')
    .argument('<CLAIM>', "The claim's ID")
    .requiredOption('--value <USD>', 'V: what you stand to lose if the claim is false')
    .option('--kappa <FACTOR>', 'κ: the safety factor', '2')
    .addOption(new Option('--distrust <ATOM>', 'The ID of an atom that you do not trust; can be given several times').argParser(collect).default([], 'none'))
    .addOption(new Option('--attack-cost <ATOM=USD>', 'What it is known to cost to break an atom; can be given several times').argParser(collect).default([], 'none'))
    .action(assess)
}

async function assess(text: string, raw: AssessOptions, command: Command): Promise<void> {
  const options = readNodeOptions(command)
  const id = parseId(text, 'CLAIM')
  const value = parsePositiveUsd(raw.value, '--value')
  const { assessClaim, assessmentJson, parseKappa } = await import('../../sdk/index.js')
  const policy = {
    value,
    kappa: parseKappa(raw.kappa, '--kappa'),
    distrusted: new Set(raw.distrust.map((atom) => parseId(atom, '--distrust'))),
    attackCosts: new Map(raw.attackCost.map(parseAttackCost)),
  }
  const { openSession } = await import('../session.js')
  const session = await openSession(options)
  const assessment = await assessClaim(session.ledger.client, id, policy)
  const { accept, reasons, atoms } = assessment.decision
  // The answer is no; it was found all the same.
  if (!accept) process.exitCode = EXIT.refused
  const json = assessmentJson(assessment, session.names)
  if (session.json) return printJson(json)
  print(`${accept ? 'accept' : 'reject'}: “${json.claim}” by ${session.names(assessment.claim.issuer)}, for ${formatUsd(value)} USD`)
  for (const reason of reasons) print(`  ${reason}`)
  for (const [at, { cost, trusted }] of atoms.entries()) {
    print(`  atom ${json.atoms[at]?.id} ${json.atoms[at]?.atom}: ${cost === 'infinite' ? '∞' : `${formatUsd(cost)} USD`}${trusted ? '' : ', not trusted'}`)
  }
}

function parseAttackCost(text: string): [Id, MicroUsd] {
  const [atom, usd, ...more] = text.split('=')
  if (usd === undefined || more.length > 0) throw new InputError('--attack-cost', `expected ATOM=USD, not ${quote(text, 80)}`)
  return [parseId(atom, '--attack-cost'), parseUsd(usd, '--attack-cost')]
}
