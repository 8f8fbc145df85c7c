import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { InputError, SionError, toHex, type Id } from '../codec/index.js'
import { keysFromSeed, SIZES } from '../crypto/keys.js'
import { createSignaturePool } from '../crypto/signature-pool.js'
import type { Signatures } from '../crypto/signatures.js'
import { decodeHeader, networkOf, type Genesis } from '../pulse/index.js'
import { Admission } from './admission.js'
import { createApi } from './api.js'
import { chainFrom, genesisTip, tipOf, treeOf, type Tip } from './chain.js'
import { Committee } from './committee.js'
import { DEFAULT_VALIDATORS, genesisObjects, MAX_VALIDATORS, newDevnet } from './devnet-genesis.js'
import { Faucet } from './faucet.js'
import { Gate } from './gate.js'
import { Head } from './head.js'
import type { Knowledge } from './knowledge.js'
import { formatAddress, listen, type Address } from './http-server.js'
import { silentLogger, type Logger } from './logger.js'
import { Mempool } from './mempool.js'
import { Producer } from './producer.js'
import { Reader } from './reader.js'
import { Store, type ChainSecrets } from './store.js'
import { Validator } from './validator.js'
import { Waiters } from './waiters.js'

export type { Address } from './http-server.js'
export type { Logger } from './logger.js'
export { MAX_VALIDATORS } from './devnet-genesis.js'

export interface NodeOptions {
  /** Where the chain is kept; a temporary folder, removed at the end, if absent. */
  readonly dataFolder?: string
  /** Default 127.0.0.1:8730; port 0 takes any free one. */
  readonly listen?: Address
  /** 1 to {@link MAX_VALIDATORS}, default 4. A chain that exists keeps its own, and refuses another number. */
  readonly validators?: number
  /** Validators that are stopped at first, by index. */
  readonly stopped?: readonly number[]
  /** Default 5,000. */
  readonly idleTickMs?: number
  /** How long the first pending transaction waits for others. Default 20. */
  readonly batchWindowMs?: number
  /** Signs and verifies, in place of the node's own workers. */
  readonly signatures?: Signatures
  readonly logger?: Logger
  /** Milliseconds since the Unix epoch. Default `Date.now`. */
  readonly clock?: () => number
}

export interface DevnetNode {
  /** Of the API, without a path. */
  readonly url: string
  readonly chain: Id
  readonly network: `sion:${string}`
  readonly genesis: Genesis
  readonly validators: number
  /** @throws SionError `unknown_validator`. */
  startValidator(index: number): void
  stopValidator(index: number): void
  /** The ledger stops answering: requests hang and no Pulse begins, until {@link DevnetNode.resume}. */
  pause(): void
  resume(): void
  /** Ends everything. What is being certified is certified at the next start on this data folder. */
  stop(): Promise<void>
}

/**
 * Starts a devnet: its ledger, its validators and its API in this process. Resolves when it listens and, if enough
 * validators run, has certified a Pulse.
 * @throws InputError naming an option; SionError `data_folder_in_use`, `data_folder_newer`, `data_folder_unusable`,
 * `state_damaged`, `address_in_use`, `cannot_listen`.
 */
export async function startNode(options: NodeOptions = {}): Promise<DevnetNode> {
  const { idleTickMs = 5_000, batchWindowMs = 20, logger = silentLogger, clock = Date.now } = options
  const { stopped = [], listen: address = { host: '127.0.0.1', port: 8730 } } = options
  checkOptions(options)
  const ending = new Endings()
  try {
    const folder = options.dataFolder ?? temporaryFolder(ending)
    const store = Store.open(folder)
    ending.add(() => store.close())
    const { genesis, secrets } = openChain(store, options.validators, clock)
    const chain = chainFrom(genesis)
    const { tip, objectCount, knowledge } = restore(store, genesis)
    const { voting, checking } = signaturesFor(options.signatures, ending)

    const validators = secrets.validatorSeeds.map((seed, index) => new Validator(index, keysFromSeed(seed), chain, tip, store, store, voting))
    const committee = new Committee(validators, chain, store, logger)
    const head = new Head(store, tip, objectCount, knowledge)
    const mempool = new Mempool()
    const waiters = new Waiters()
    const gate = new Gate()
    const producer = new Producer(chain, head, store, mempool, committee, waiters, { idleTickMs, batchWindowMs, clock }, logger)
    const admission = new Admission(chain, head, store, mempool, committee, checking, () => producer.look())
    const faucet = new Faucet(chain, keysFromSeed(secrets.faucetSeed), head, checking, admission)
    const reader = new Reader(chain, head, store, committee)
    const setRunning = (index: number, running: boolean): void => {
      committee.setRunning(index, running)
      producer.look()
    }
    for (const index of stopped) {
      if (index >= validators.length) throw new InputError('stopped', `validators are numbered 0 to ${validators.length - 1}, and there is no ${index}`)
      setRunning(index, false)
    }

    producer.start()
    ending.add(() => producer.stop())
    const api = createApi({ chain, genesis, reader, admission, faucet, mempool, committee, waiters, gate, logger, setRunning })
    const server = await listen((request) => api.fetch(request), address)
    ending.add(() => server.close())
    if (!isLoopback(address.host)) {
      logger.warn(`listening on ${formatAddress(server.address)}: whoever reaches it can take the faucet’s money and stop validators`)
    }
    if (committee.active) await producer.firstPulse()

    return {
      url: `http://${formatAddress(server.address)}`,
      chain: chain.id,
      network: networkOf(chain.id),
      genesis,
      validators: validators.length,
      startValidator: (index) => setRunning(index, true),
      stopValidator: (index) => setRunning(index, false),
      pause() {
        gate.close()
        producer.paused = true
      },
      resume() {
        producer.paused = false
        gate.reopen()
      },
      stop: () => ending.run(),
    }
  } catch (error) {
    await ending.run()
    throw error
  }
}

/** Whether only this machine can reach `host`. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127\.[0-9]+\.[0-9]+\.[0-9]+$/.test(host)
}

/** What was started, ended in the opposite order, once. */
class Endings {
  readonly #steps: (() => Promise<void> | void)[] = []
  #ended: Promise<void> | undefined

  add(step: () => Promise<void> | void): void {
    this.#steps.push(step)
  }

  run(): Promise<void> {
    this.#ended ??= (async () => {
      for (const step of this.#steps.reverse()) await step()
    })()
    return this.#ended
  }
}

function temporaryFolder(ending: Endings): string {
  const folder = mkdtempSync(join(tmpdir(), 'sion-devnet-'))
  const remove = (): void => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  ending.add(() => {
    process.off('exit', remove)
    remove()
  })
  return folder
}

function openChain(store: Store, wanted: number | undefined, clock: () => number): { genesis: Genesis; secrets: ChainSecrets } {
  const existing = store.chain()
  if (existing === undefined) {
    const begun = newDevnet(wanted ?? DEFAULT_VALIDATORS, Math.floor(clock()))
    store.begin(begun.genesis, begun.secrets, genesisObjects(begun.genesis))
    return begun
  }
  const { length } = existing.genesis.validators
  if (wanted !== undefined && wanted !== length) {
    throw new InputError('validators', `the chain in this data folder has ${length} validators, not ${wanted}`)
  }
  return existing
}

/** The last certified Pulse, with the state under it computed anew and compared. */
function restore(store: Store, genesis: Genesis): { tip: Tip; objectCount: number; knowledge: Knowledge } {
  const { tree, count: objectCount, knowledge } = treeOf(store.objects())
  const number = store.latest()
  if (number === 0) return { tip: genesisTip(genesis, tree), objectCount, knowledge }
  const stored = store.pulse(number)
  const header = stored && decodeHeader(stored.header)
  if (header === undefined || header.stateRoot !== toHex(tree.root) || header.knowledgeRoot !== toHex(knowledge.tree.root())) {
    throw new SionError('state_damaged', `the data folder’s state is not the one that Pulse ${number} certified`)
  }
  return { tip: tipOf(header, tree), objectCount, knowledge }
}

/**
 * Two pools, so that checking a payment does not queue behind a Pulse's signatures. Voting has more threads than a
 * small machine has cores: three long signatures then share two cores evenly, instead of the third waiting for one.
 */
function signaturesFor(given: Signatures | undefined, ending: Endings): { voting: Signatures; checking: Signatures } {
  if (given !== undefined) return { voting: given, checking: given }
  const voting = createSignaturePool({ threads: 4 })
  const checking = createSignaturePool()
  void warmUp(checking)
  ending.add(async () => {
    await Promise.all([voting.close(), checking.close()])
  })
  return { voting, checking }
}

/** Starts the threads: the first payment would wait half a second for them. */
async function warmUp(pool: Signatures): Promise<void> {
  const { mlDsaPublic, mlDsaSignature, message } = SIZES
  const noSignature = [new Uint8Array(mlDsaPublic), new Uint8Array(message), new Uint8Array(mlDsaSignature)] as const
  try {
    await Promise.all([pool.verify('ml-dsa-44', ...noSignature), pool.verify('ml-dsa-44', ...noSignature)])
  } catch {
    // Closed meanwhile; and a pool that is broken says so to the first who needs it.
  }
}

function checkOptions({ validators = DEFAULT_VALIDATORS, stopped = [], idleTickMs = 0, batchWindowMs = 0 }: NodeOptions): void {
  if (!Number.isInteger(validators) || validators < 1 || validators > MAX_VALIDATORS) {
    throw new InputError('validators', `expected a whole number from 1 to ${MAX_VALIDATORS}, not ${validators}`)
  }
  for (const [field, value] of Object.entries({ idleTickMs, batchWindowMs })) {
    if (!(value >= 0)) throw new InputError(field, `expected milliseconds, not ${value}`)
  }
  for (const index of stopped) {
    if (!Number.isInteger(index) || index < 0) throw new InputError('stopped', `expected the numbers of validators, not ${index}`)
  }
}
