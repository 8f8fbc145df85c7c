// A load of keep-alive connections, in a process of its own so that the server has a core to itself. Started with a JSON
// message that says what to send; answers with what came of it.
import { fork } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { PayerChain } from '../../src/sdk/streams/payer-chain.js'
import { encodePayment } from '../../src/x402/headers.js'
import { streamPayload } from '../../src/x402/stream/payment.js'
import type { PaymentRequirements } from '../../src/x402/wire.js'

export interface Load {
  readonly port: number
  readonly path: string
  readonly milliseconds: number
  /** One connection for each; without streams, `connections` unpaid ones. */
  readonly streams: readonly LoadStream[]
  readonly connections: number
  readonly requirements: PaymentRequirements | undefined
}

export interface LoadStream {
  readonly stream: string
  /** 32 bytes in hex. */
  readonly seed: string
  readonly salt: string
  readonly length: number
  readonly next: number
}

export interface LoadResult {
  readonly answered: number
  readonly milliseconds: number
  /** Status codes and how many of each. */
  readonly statuses: Record<string, number>
  /** Where each stream stands now. */
  readonly next: number[]
  readonly headerBytes: number
}

/** What the child does: answers each load it is sent. */
export function serveLoads(): void {
  process.on('message', (load: Load) => {
    void run(load).then((result) => process.send?.(result))
  })
}

/** The parent's side: a child that runs this same file with {@link LOAD_VARIABLE} set. */
export function startLoader(): { run(load: Load): Promise<LoadResult>; stop(): void } {
  const child = fork(process.argv[1] ?? '', { env: { ...process.env, [LOAD_VARIABLE]: '1' } })
  return {
    run(load) {
      return new Promise((resolve, reject) => {
        const ended = (code: number | null): void => reject(new Error(`the load ended with ${code}`))
        child.once('exit', ended)
        child.once('message', (result) => {
          child.off('exit', ended)
          resolve(result as LoadResult)
        })
        child.send(load)
      })
    },
    stop: () => void child.kill(),
  }
}

export const LOAD_VARIABLE = 'SION_BENCH_LOAD'

const chains = new Map<string, PayerChain>()

async function run(load: Load): Promise<LoadResult> {
  const payers: (Payer | undefined)[] = []
  for (const stream of load.streams) payers.push(new Payer(await chainOf(stream), stream, load.requirements))
  while (payers.length < load.connections) payers.push(undefined)
  const statuses: Record<string, number> = {}
  let answered = 0
  const started = performance.now()
  const until = started + load.milliseconds
  await Promise.all(
    payers.map((payer) =>
      drive(load, payer, until, (status) => {
        answered++
        statuses[status] = (statuses[status] ?? 0) + 1
      }),
    ),
  )
  const paid = payers.filter((payer) => payer !== undefined)
  return {
    answered,
    milliseconds: performance.now() - started,
    statuses,
    next: paid.map(({ next }) => next),
    headerBytes: paid[0] === undefined ? 0 : Math.round(paid.reduce((sum, { bytes }) => sum + bytes, 0) / paid.reduce((sum, { sent }) => sum + sent, 0)),
  }
}

async function chainOf({ stream, seed, salt, length, next }: LoadStream): Promise<PayerChain> {
  const known = chains.get(stream)
  if (known !== undefined) return known
  const chain = await PayerChain.build({ seed: Buffer.from(seed, 'hex'), salt: Buffer.from(salt, 'hex'), length }, { next })
  chains.set(stream, chain)
  return chain
}

class Payer {
  next: number
  sent = 0
  bytes = 0

  constructor(
    private readonly chain: PayerChain,
    private readonly of: LoadStream,
    private readonly requirements: PaymentRequirements | undefined,
  ) {
    this.next = of.next
  }

  header(): string {
    const position = this.next++
    const jump = position % 64 === 0 ? this.chain.jump(position) : undefined
    const payload = streamPayload({ stream: this.of.stream, position, value: this.chain.reveal(position), ...(jump === undefined ? {} : { jump }) })
    if (this.requirements === undefined) throw new Error('no requirements to pay')
    const header = encodePayment({ x402Version: 2, accepted: this.requirements, payload })
    this.sent++
    this.bytes += header.length
    return `PAYMENT-SIGNATURE: ${header}\r\n`
  }
}

/** One connection, one request at a time, until the time is up. */
function drive({ port, path }: Load, payer: Payer | undefined, until: number, answered: (status: string) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    let pending = ''
    const send = (): void => {
      if (performance.now() >= until) {
        socket.destroy()
        resolve()
        return
      }
      socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n${payer?.header() ?? ''}\r\n`)
    }
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1')
      const end = pending.indexOf('\r\n\r\n')
      if (end < 0) return
      const length = /content-length: (\d+)/i.exec(pending)?.[1]
      const whole = length === undefined ? pending.endsWith('0\r\n\r\n') && pending.length > end + 4 : pending.length >= end + 4 + Number(length)
      if (!whole) return
      const status = pending.slice(9, 12)
      pending = ''
      answered(status)
      send()
    })
  })
}

