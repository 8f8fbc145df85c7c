import { join } from 'node:path'
import { Command, Option } from 'commander'
import { formatUsd, InputError, messageOf, parseUsd, quote } from '../../codec/index.js'
import type { PayingFetch, Quote } from '../../fetch/index.js'
import type { SettleResponse } from '../../x402/wire.js'
import { EXIT, ExitError } from '../exit.js'
import { jsonOption, nodeOption, parseSeconds, readNodeOptions } from '../options.js'
import { oneLine, printJson, speaker } from '../output.js'

interface FetchOptions {
  wallet?: string
  count: string
  max: string
  patience: string
}

/** `sion x402 fetch URL` */
export function fetchCommand(): Command {
  return new Command('fetch')
    .description('Fetch a URL, paying through x402 if the server asks')
    .argument('<URL>', 'The URL')
    .addOption(nodeOption())
    .option('--wallet <WALLET>', 'The paying wallet')
    .option('--count <COUNT>', 'Fetch this many times', '1')
    .option('--max <MAX>', 'The most to pay (USD)', '1')
    .option('--patience <SECONDS>', 'How long to send the same payment again while its outcome is not known', '60')
    .addOption(new Option('--chain <CHAIN>', 'The chain identity to pay on. Without it the node vouches for itself').env('SION_CHAIN'))
    .addOption(jsonOption())
    .action(fetchUrl)
}

async function fetchUrl(url: string, options: FetchOptions, command: Command): Promise<void> {
  const { node, chain, json } = readNodeOptions(command)
  checkUrl(url)
  const count = parseCount(options.count)
  parseUsd(options.max, '--max')
  const patienceSeconds = parseSeconds(options.patience, '--patience', 86_400)
  if (options.wallet === undefined) throw new InputError('--wallet', 'name the wallet that pays, such as --wallet dana')

  const { parseWalletName, sionHome } = await import('../../sdk/node.js')
  parseWalletName(options.wallet, '--wallet')

  const say = speaker({ json })
  const { openSession } = await import('../session.js')
  const session = await openSession({ node, json, ...(chain === undefined ? {} : { chain }) })
  const wallet = await session.wallet(options.wallet, '--wallet')
  const { payingFetch } = await import('../../fetch/index.js')
  const { fileAttempts } = await import('../../fetch/attempt-files.js')
  const quotes: Quote[] = []
  const pay = payingFetch({
    wallet,
    node,
    chain: session.trust.chain,
    maxPerRequest: options.max,
    maxTotal: options.max,
    patienceSeconds,
    attempts: fileAttempts(join(sionHome(), 'attempts')),
    onQuote(quote) {
      quotes.push(quote)
      for (const line of offerLines(quote)) say(line)
    },
  })
  for (let i = 0; i < count; i++) {
    quotes.length = 0
    const result = await fetchOnce(pay, url)
    report(result, say)
    if (json) printJson({ ...result, ...(quotes[0] === undefined ? {} : { quoted: quotes[0].required }) })
    if (result.status >= 400) {
      process.exitCode = result.status === 402 ? EXIT.refused : EXIT.failed
      return
    }
  }
}

interface Fetched {
  readonly body: string
  readonly paid: boolean
  readonly settlement: SettleResponse | null
  readonly status: number
}

async function fetchOnce(pay: PayingFetch, url: string): Promise<Fetched> {
  const { PaymentError, settlementOf } = await import('../../fetch/index.js')
  try {
    const response = await pay(url)
    const settlement = settlementOf(response)
    return { body: await response.text(), paid: settlement?.success === true, settlement: settlement ?? null, status: response.status }
  } catch (error) {
    if (error instanceof PaymentError) throw new ExitError(exitOf(error.code), error.code, error.message, { cause: error })
    if (error instanceof TypeError) {
      throw new ExitError(EXIT.failed, 'server_unreachable', `${url} cannot be reached: ${messageOf(error.cause ?? error)}; nothing was paid`, { cause: error })
    }
    throw error
  }
}

function exitOf(code: string): 1 | 3 | 4 | 5 {
  if (code === 'outcome_unknown') return EXIT.unknown
  if (code === 'transaction_refused') return EXIT.refused
  return code === 'ledger_unavailable' ? EXIT.failed : EXIT.notSent
}

function offerLines({ required }: Quote): string[] {
  return required.accepts.map(
    ({ amount, asset, payTo, network, scheme }) =>
      oneLine(`402 Payment Required: ${/^\d{1,16}$/.test(amount) ? formatUsd(BigInt(amount)) : amount} ${asset} to ${payTo} on ${network} (${scheme})`),
  )
}

function report({ body, settlement, status }: Fetched, say: (line: string) => void): void {
  if (settlement?.success === true) say(oneLine(`paid: transaction ${settlement.transaction} settled and verified by the server`))
  else if (settlement !== null) sayRefusal(settlement, say)
  say(`${status} ${body}`)
}

function sayRefusal({ errorReason }: SettleResponse, say: (line: string) => void): void {
  say(oneLine(`payment refused: ${errorReason ?? 'the server gave no reason'}`))
}

function checkUrl(text: string): void {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new InputError('URL', `expected an http:// or https:// URL, not ${quote(text, 80)}`)
  }
}

function parseCount(text: string): number {
  if (!/^[1-9][0-9]{0,6}$/.test(text)) throw new InputError('--count', `expected a whole number from 1, not ${quote(text)}`)
  return Number(text)
}
