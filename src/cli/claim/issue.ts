import { Command } from 'commander'
import { InputError } from '../../codec/index.js'
import type { Atom, Formula } from '../../ledger/index.js'
import { readNodeOptions } from '../options.js'
import { parseWhole } from '../serving.js'

interface IssueOptions {
  schema: string
  bond?: string
  formula?: string
  validFor: string
  detection: string
  adjudicator?: string
}

/** `sion claim issue ISSUER SUBJECT` */
export function issueCommand(): Command {
  return new Command('issue')
    .description('Put a claim on record: a statement and what it rests on, for anyone to see and nobody to take back')
    .argument('<ISSUER>', 'The wallet that claims it')
    .argument('<SUBJECT>', 'What is claimed')
    .option('--schema <SCHEMA>', 'How to read it', 'note/v1')
    .option('--bond <LABEL>', "Let it rest on the issuer's bond of this label; otherwise it rests on the issuer's dual signature")
    .option('--formula <FORMULA>', 'Let it rest on more: all(dual, bond:audit), any(…), 2of(…, …, …)')
    .option('--valid-for <N>', 'How many Pulses it holds for', '100000')
    .option('--detection <N>', 'How likely a falsehood is found out, in thousandths', '1000')
    .option('--adjudicator <ATOM>', 'Who judges it: bond:OWNER:LABEL, or a signature family')
    .action(issue)
}

async function issue(issuerName: string, subject: string, options: IssueOptions, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  if (options.bond !== undefined && options.formula !== undefined) throw new InputError('--formula', 'give either --bond or --formula, not both')
  const { CERTAIN_DETECTION, MAX_CLAIM_PULSES, MAX_SCHEMA_BYTES, MAX_SUBJECT_BYTES } = await import('../../ledger/index.js')
  const { claimIssuedJson, issueClaim, issuedClaim, parseAdjudicator, parseFormula, parseText } = await import('../../sdk/index.js')
  const detection = parseWhole(options.detection, '--detection', 1, CERTAIN_DETECTION)
  const pulses = parseWhole(options.validFor, '--valid-for', 1, MAX_CLAIM_PULSES)
  if (parseText(subject, 'SUBJECT', MAX_SUBJECT_BYTES) === '') throw new InputError('SUBJECT', 'expected what is claimed, not nothing')
  if (parseText(options.schema, '--schema', MAX_SCHEMA_BYTES) === '') throw new InputError('--schema', 'expected how to read the claim, such as note/v1')
  const { parseWalletName } = await import('../../sdk/node.js')
  parseWalletName(issuerName, 'ISSUER')
  const { openSession } = await import('../session.js')
  const { actAndPrint } = await import('../transact.js')
  const session = await openSession(nodeOptions)
  const wallet = await session.wallet(issuerName, 'ISSUER')
  const ownerOf = (field: string) => (owner: string | undefined) => (owner === undefined ? wallet.account : session.account(owner, field))
  const text = options.formula ?? (options.bond === undefined ? undefined : `bond:${options.bond}`)
  const field = options.bond === undefined ? '--formula' : '--bond'
  const formula: Formula | undefined = text === undefined ? undefined : await parseFormula(text, field, ownerOf(field))
  const adjudicator: Atom | undefined =
    options.adjudicator === undefined ? undefined : await parseAdjudicator(options.adjudicator, '--adjudicator', ownerOf('--adjudicator'))
  const outcome = await actAndPrint(
    session,
    wallet,
    (hooks) =>
      issueClaim(
        session.ledger,
        wallet,
        { subject, schema: options.schema, detection, pulses, ...(formula === undefined ? {} : { formula }), ...(adjudicator === undefined ? {} : { adjudicator }) },
        hooks,
      ),
    (_shown, became) => claimIssuedJson(became, session.names),
  )
  const claim = issuedClaim(outcome)
  if (claim !== undefined) session.say(`claim ${claim}`)
}
