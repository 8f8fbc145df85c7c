import { join } from 'node:path'
import { Command, Option } from 'commander'
import { formatUsd, InputError, messageOf, parseUsd, quote, shortId } from '../../codec/index.js'
import type { PayingFetch, PayingFetchOptions, Quote } from '../../fetch/index.js'
import type { SettleResponse } from '../../x402/wire.js'
import { EXIT, ExitError } from '../exit.js'
import { jsonOption, nodeOption, parseSeconds, readNodeOptions, type NodeOptions } from '../options.js'
import { oneLine, printJson, speaker } from '../output.js'

interface FetchOptions {
  wallet?: string
  stream?: string
  count: string
  parallel: string
  max: string
  patience: string
}

/** `sion x402 fetch URL` */
export function fetchCommand(): Command {
  return new Command('fetch')
    .description('Fetch a URL, paying through x402 if the server asks')
    .argument('<URL>', 'The URL')
    .addOption(nodeOption())
    .option('--wallet <WALLET>', 'The paying wallet (not needed with --stream)')
    .option('--stream <STREAM>', 'Pay from this payment stream (ID, or its first digits) instead: one chain element per request, no transaction')
    .option('--count <COUNT>', 'Fetch this many times (with --stream, every request after the first is paid up front)', '1')
    .option('--parallel <N>', 'Fetch up to this many at a time', '1')
    .option('--max <MAX>', 'The most to pay (USD)', '1')
    .option('--patience <SECONDS>', 'How long to send the same payment again while its outcome is not known', '60')
    .addOption(new Option('--chain <CHAIN>', 'The chain identity to pay on. Without it the node vouches for itself').env('SION_CHAIN'))
    .addOption(jsonOption())
    .action(fetchUrl)
}

async function fetchUrl(url: string, options: FetchOptions, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const { json } = nodeOptions
  checkUrl(url)
  const count = parseCount(options.count, '--count', 9_999_999)
  const parallel = parseCount(options.parallel, '--parallel', 1_000)
  parseUsd(options.max, '--max')
  const patienceSeconds = parseSeconds(options.patience, '--patience', 86_400)
  if (options.stream === undefined && options.wallet === undefined) {
    throw new InputError('--wallet', 'name the wallet that pays, such as --wallet dana, or a stream: --stream ID')
  }
  const say = speaker({ json })
  const source = options.stream === undefined ? await walletSource(options.wallet, nodeOptions) : await streamSource(options.stream, nodeOptions)
  try {
    const { payingFetch } = await import('../../fetch/index.js')
    const quotes: Quote[] = []
    const pay = payingFetch({
      ...source.options,
      maxPerRequest: options.max,
      maxTotal: options.max,
      patienceSeconds,
      onQuote(quote) {
        quotes.push(quote)
        for (const line of offerLines(quote)) say(line)
      },
    })
    await fetchMany(count, parallel, async () => {
      const result = await fetchOnce(pay, url)
      report(result, say)
      const [quote] = quotes.splice(0)
      if (json) printJson({ ...result, ...(quote === undefined ? {} : { quoted: quote.required }) })
      if (result.status < 400) return true
      process.exitCode = result.status === 402 ? EXIT.refused : EXIT.failed
      return false
    })
  } finally {
    await source.close()
  }
}

/** Calls `once` as often as `count`, up to `parallel` at a time, until one says no or throws; those under way end first. */
async function fetchMany(count: number, parallel: number, once: () => Promise<boolean>): Promise<void> {
  let left = count
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left--
      try {
        if (!(await once())) left = 0
      } catch (error) {
        left = 0
        throw error
      }
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: Math.min(parallel, count) }, worker))
  for (const end of ended) if (end.status === 'rejected') throw end.reason
}

/** What pays. */
interface Source {
  readonly options: Pick<PayingFetchOptions, 'wallet' | 'stream' | 'node' | 'chain' | 'attempts'>
  close(): Promise<void>
}

async function walletSource(name: string | undefined, nodeOptions: NodeOptions): Promise<Source> {
  const { parseWalletName, sionHome } = await import('../../sdk/node.js')
  const parsed = parseWalletName(name, '--wallet')
  const { openSession } = await import('../session.js')
  const session = await openSession(nodeOptions)
  const { fileAttempts } = await import('../../fetch/attempt-files.js')
  return {
    options: {
      wallet: await session.wallet(parsed, '--wallet'),
      node: nodeOptions.node,
      chain: session.trust.chain,
      attempts: fileAttempts(join(sionHome(), 'attempts')),
    },
    async close() {},
  }
}

/** The stream's own file says which chain it is on, so that no node is needed to pay from it. */
async function streamSource(id: string, nodeOptions: NodeOptions): Promise<Source> {
  const { openFiles, ownStream, refresher } = await import('../stream/local-stream.js')
  const { chainProgress } = await import('../stream/progress-bar.js')
  const files = await openFiles()
  const secret = await ownStream(files, id, '--stream')
  if (nodeOptions.chain !== undefined && nodeOptions.chain !== secret.chain) {
    throw new InputError('--stream', `stream ${shortId(secret.stream)} is on chain ${secret.chain}, not on ${nodeOptions.chain}`)
  }
  const stream = await files.openPayer(secret.stream, {
    onProgress: chainProgress(secret.length),
    refresh: refresher(files, secret, nodeOptions),
  })
  return { options: { stream }, close: () => stream.close() }
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
  if (code === 'outcome_unknown' || code === 'answer_lost') return EXIT.unknown
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
  if (settlement?.success === true) say(oneLine(paidLine(settlement)))
  else if (settlement !== null) sayRefusal(settlement, say)
  say(`${status} ${body}`)
}

function paidLine({ transaction, extensions }: SettleResponse): string {
  const sion = extensions?.['sion']
  if (transaction !== '' || typeof sion !== 'object' || sion === null || !('position' in sion)) {
    return `paid: transaction ${transaction} settled and verified by the server`
  }
  return `paid from the stream: position ${String(sion.position)}, checked by the server with one hash per step`
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

function parseCount(text: string, flag: string, most: number): number {
  if (/^[1-9][0-9]{0,6}$/.test(text) && Number(text) <= most) return Number(text)
  throw new InputError(flag, `expected a whole number from 1 to ${most}, not ${quote(text)}`)
}
