import { Agent, request } from 'node:http'
import type { Id } from '../../src/codec/index.js'
import { textToBase64, base64ToText, toHex } from '../../src/codec/index.js'
import { CHECKPOINT_EVERY } from '../../src/crypto/chain-step.js'
import { randomBytes } from '../../src/crypto/runtime.js'
import { streamId, type Stream } from '../../src/ledger/index.js'
import { createLightClient, httpTransport } from '../../src/light/index.js'
import { createNodeClient, transact, waitForReceipt, walletFromSeed, type Ledger, type Wallet } from '../../src/sdk/index.js'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import type { PaymentRequired, PaymentRequirements, SettleResponse } from '../../src/x402/wire.js'

export function ledgerAt(url: string, chain: Id): Ledger {
  const transport = httpTransport(url)
  return { client: createLightClient({ transport, chain }), node: createNodeClient(transport) }
}

/** A wallet that nobody else has, with money. */
export async function fundedWallet(ledger: Ledger, microUsd = 1_000_000_000n): Promise<Wallet> {
  const wallet = walletFromSeed(randomBytes(32))
  await fund(ledger, wallet.account, microUsd)
  return wallet
}

export async function fund(ledger: Ledger, account: Id, microUsd: bigint): Promise<void> {
  const submission = await ledger.node.faucet(account, microUsd)
  if (submission.kind !== 'submitted') throw new Error(`the faucet gave nothing: ${submission.reason}`)
  await waitForReceipt(ledger.client, submission.digest)
}

export interface StreamTerms {
  readonly payee: Id
  readonly length?: number
  /** Micro-USD. */
  readonly step?: bigint
  /** Micro-USD; default: as much as the chain can pay. */
  readonly escrow?: bigint
  /** Default: far away. */
  readonly lastPulse?: number
}

/** A stream on the ledger with its secret: what a payer has, and nothing of the paying client that is sold. */
export class PaidStream {
  /** The highest checkpoint past which a payment was accepted. */
  #passed = 0

  private constructor(
    readonly id: Id,
    readonly chain: PayerChain,
    readonly payee: Id,
    readonly step: bigint,
    readonly payer: Wallet,
    readonly ledger: Ledger,
  ) {}

  static async open(ledger: Ledger, payer: Wallet, terms: StreamTerms): Promise<PaidStream> {
    const { payee, length = 1_000, step = 1_000n, escrow = step * BigInt(length) } = terms
    const chain = await PayerChain.build({ seed: randomBytes(32), salt: randomBytes(16), length })
    const lastPulse = terms.lastPulse ?? (await ledger.client.latest()).header.number + 1_000_000
    const { anchor, salt, checkpointRoot } = chain
    const id = streamId(
      await settled(transact(ledger, payer, { kind: 'openStream', payee, anchor, salt, checkpointRoot, length, stepValue: step, escrow, lastPulse })),
    )
    return new PaidStream(id, chain, payee, step, payer, ledger)
  }

  /** The `payload` of a payment up to `position`; with the jump, until a payment past its checkpoint was accepted. */
  payload(position: number, { window = false }: { window?: boolean } = {}): Record<string, unknown> {
    const jump = this.chain.jump(position)
    return {
      stream: this.id,
      position,
      value: toHex(this.chain.reveal(position)),
      ...(jump !== undefined && jump.index > this.#passed ? { jump: jumpJson(jump) } : {}),
      ...(window ? { window } : {}),
    }
  }

  /** A payment up to `position` was accepted. */
  accepted(position: number): void {
    this.#passed = Math.max(this.#passed, Math.floor(position / CHECKPOINT_EVERY))
  }

  async topUp(amount: bigint, lastPulse?: number): Promise<void> {
    const record = await this.record()
    await settled(transact(this.ledger, this.payer, { kind: 'topUpStream', stream: this.id, amount, lastPulse: lastPulse ?? record.lastPulse }))
  }

  async close(by: Wallet): Promise<void> {
    await settled(transact(this.ledger, by, { kind: 'closeStream', stream: this.id }))
  }

  /** As the ledger has it, proven. */
  async record(): Promise<Stream> {
    const { object } = await this.ledger.client.object(this.id)
    if (object?.kind !== 'stream') throw new Error(`${this.id} is no stream`)
    return object
  }

  async settled(): Promise<number> {
    return (await this.record()).settled
  }
}

export function jumpJson({ index, path }: { index: number; path: readonly Uint8Array[] }): { index: number; path: string[] } {
  return { index, path: path.map((node) => toHex(node)) }
}

async function settled(outcome: ReturnType<typeof transact>): Promise<Id> {
  const done = await outcome
  if (done.kind === 'settled') return done.digest
  throw new Error(`the ledger did not do it: ${JSON.stringify('receipt' in done ? done.receipt.receipt.outcome : done.reason)}`)
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

/** A client with connections that stay open. It knows of HTTP and of nothing else. */
export class HttpClient {
  readonly #agent: Agent

  constructor(readonly timeoutMs = 60_000) {
    this.#agent = new Agent({ keepAlive: true, maxSockets: Infinity, scheduling: 'lifo' })
  }

  /** Rejects where there was no answer: whether the request arrived is not known then. */
  get(url: string, headers: Record<string, string> = {}): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const outgoing = request(url, { agent: this.#agent, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks).toString() }))
        response.on('error', reject)
        response.on('aborted', () => reject(new Error('the answer was cut short')))
      })
      outgoing.setTimeout(this.timeoutMs, () => outgoing.destroy(new Error(`no answer within ${this.timeoutMs} ms`)))
      outgoing.on('error', reject)
      outgoing.end()
    })
  }

  close(): void {
    this.#agent.destroy()
  }
}

/** What a seller asks, as its 402 says it. */
export async function quoteOf(client: HttpClient, url: string): Promise<PaymentRequired> {
  const answer = await client.get(url)
  if (answer.status !== 402) throw new Error(`expected a 402, not ${answer.status}: ${answer.body}`)
  return JSON.parse(answer.body) as PaymentRequired
}

export async function streamTermsOf(client: HttpClient, url: string): Promise<PaymentRequirements> {
  const { accepts } = await quoteOf(client, url)
  const terms = accepts.find(({ scheme }) => scheme === 'stream')
  if (terms === undefined) throw new Error(`no stream among ${JSON.stringify(accepts)}`)
  return terms
}

export function paymentHeader(accepted: PaymentRequirements, payload: unknown): Record<string, string> {
  return { 'PAYMENT-SIGNATURE': textToBase64(JSON.stringify({ x402Version: 2, accepted, payload })) }
}

export interface PaidAnswer extends HttpAnswer {
  /** What `PAYMENT-RESPONSE` says. */
  readonly settlement: SettleResponse | undefined
  /** `extensions.sion` of it. */
  readonly sion: Readonly<Record<string, unknown>>
  readonly code: unknown
}

/** One request with this payment, and what was answered. */
export async function payOnce(
  client: HttpClient,
  url: string,
  accepted: PaymentRequirements,
  payload: unknown,
  headers: Record<string, string> = {},
): Promise<PaidAnswer> {
  const answer = await client.get(url, { ...paymentHeader(accepted, payload), ...headers })
  const header = answer.headers['payment-response']
  const settlement = typeof header === 'string' ? (JSON.parse(base64ToText(header, 'PAYMENT-RESPONSE')) as SettleResponse) : undefined
  const sion = (settlement?.extensions?.['sion'] ?? {}) as Record<string, unknown>
  return { ...answer, settlement, sion, code: sion['code'] }
}
