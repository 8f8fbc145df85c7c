import { InputError, isId, shortId, type Id } from '../../codec/index.js'
import type { LedgerSays, Wallet } from '../../sdk/index.js'
import type { StreamFiles } from '../../sdk/node.js'
import type { StreamSecret } from '../../sdk/index.js'
import { EXIT, ExitError } from '../exit.js'
import type { NodeOptions } from '../options.js'
import type { Session } from '../session.js'

/** A stream as a command was told it: by its id, or by the first digits of one that this machine pays from. */
export interface NamedStream {
  readonly id: Id
  /** What this machine keeps of it, if it is one of its own. */
  readonly secret: StreamSecret | undefined
}

export async function openFiles(): Promise<StreamFiles> {
  const { openStreamFiles, sionHome } = await import('../../sdk/node.js')
  return openStreamFiles(sionHome())
}

/** @throws InputError naming `field`. */
export async function nameStream(files: StreamFiles, text: string, field: string): Promise<NamedStream> {
  if (!isId(text)) {
    const id = await files.find(text, field)
    return { id, secret: await files.load(id) }
  }
  const own = (await files.list()).includes(text)
  return { id: text, secret: own ? await files.load(text) : undefined }
}

/** A stream of this machine. @throws InputError naming `field`. */
export async function ownStream(files: StreamFiles, text: string, field: string): Promise<StreamSecret> {
  return files.load(await files.find(text, field))
}

/** @throws ExitError `wrong_chain` where the node is on another chain than the stream. */
export function checkChain(session: Session, { stream, chain }: StreamSecret): void {
  if (session.trust.chain === chain) return
  throw new ExitError(EXIT.failed, 'wrong_chain', `stream ${shortId(stream)} is on chain ${chain}, and the node on ${session.trust.chain}`)
}

/** The wallet that was named, else the one that opened the stream. @throws InputError `--wallet`. */
export async function walletFor(session: Session, named: string | undefined, secret: StreamSecret | undefined): Promise<Wallet> {
  const name = named ?? secret?.wallet
  if (name === undefined) throw new InputError('--wallet', 'name the wallet that signs, such as --wallet alice')
  return session.wallet(name, '--wallet')
}

/** Remembers what the ledger says of an own stream, so that paying needs no node. */
export async function learnTerms(session: Session, files: StreamFiles, stream: Id): Promise<LedgerSays | undefined> {
  const { readStream } = await import('../../sdk/index.js')
  const { stream: found } = await readStream(session.ledger.client, stream)
  if (found === undefined) return undefined
  const { escrow, lastPulse, settled, closed } = found
  await files.remember(stream, { escrow, lastPulse })
  return { escrow, settled, closed }
}

/** Asks the ledger of a stream when a payer needs to know: no node is needed until then. */
export function refresher(files: StreamFiles, secret: StreamSecret, options: NodeOptions): () => Promise<LedgerSays | undefined> {
  return async () => {
    const { openSession } = await import('../session.js')
    const session = await openSession({ ...options, chain: secret.chain })
    return learnTerms(session, files, secret.stream)
  }
}
