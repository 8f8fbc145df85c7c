import { fromBase64, fromHex, parseUsd, toBase64, toHex, type Id } from '../../src/codec/index.js'
import { keysFromSeed, type DualKeys } from '../../src/crypto/keys.js'
import { randomBytes } from '../../src/crypto/runtime.js'
import { inlineSignatures, type Signatures } from '../../src/crypto/signatures.js'
import {
  accountOf,
  decodeReceipt,
  digestOf,
  encodeSigned,
  type Action,
  type Body,
  type Receipt,
  type SignedTransaction,
} from '../../src/ledger/index.js'
import type { AccountJson, ErrorJson, ReceiptJson, StatusJson, SubmittedJson } from '../../src/light/node-api.js'

/** A wallet whose keys nobody else has. */
export function newWallet(): { keys: DualKeys; id: Id } {
  const keys = keysFromSeed(randomBytes(32))
  return { keys, id: accountOf(keys.publicKeys) }
}

export async function sign(keys: DualKeys, body: Body, options: { dual?: boolean; withKeys?: boolean } = {}): Promise<SignedTransaction> {
  const message = fromHex(digestOf(body), 'digest', 32)
  const mlDsa = await inlineSignatures.sign('ml-dsa-44', keys, message)
  const slhDsa = options.dual === true ? await inlineSignatures.sign('slh-dsa-sha2-128f', keys, message) : undefined
  return { body, mlDsa, slhDsa, keys: options.withKeys === false ? undefined : keys.publicKeys }
}

export interface Answer<T> {
  status: number
  body: T
}

/** The API as a test sees it: answers, and no verification. */
export class Api {
  constructor(
    readonly url: string,
    readonly chain: Id,
  ) {}

  async get<T>(path: string, signal?: AbortSignal): Promise<Answer<T>> {
    const response = await fetch(this.url + path, signal === undefined ? {} : { signal })
    return { status: response.status, body: (await response.json()) as T }
  }

  async post<T>(path: string, body: unknown): Promise<Answer<T>> {
    const response = await fetch(this.url + path, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as T }
  }

  async status(): Promise<StatusJson> {
    return (await this.get<StatusJson>('/v1/status')).body
  }

  async balance(account: Id): Promise<bigint> {
    return parseUsd((await this.get<AccountJson>(`/v1/accounts/${account}`)).body.balance, 'balance')
  }

  async body(signer: Id, action: Action, more: Partial<Body> = {}): Promise<Body> {
    const validUntil = more.validUntil ?? (await this.status()).certified_pulse + 100
    return { chain: this.chain, signer, nonce: toHex(randomBytes(16)), action, ...more, validUntil }
  }

  submit(tx: SignedTransaction): Promise<Answer<SubmittedJson & ErrorJson>> {
    return this.post('/v1/transactions', { transaction: toBase64(encodeSigned(tx)) })
  }

  async receipt(digest: Id, wait = 30): Promise<Receipt | undefined> {
    const { status, body } = await this.get<ReceiptJson>(`/v1/receipts/${digest}?wait=${wait}`)
    return status === 200 ? decodeReceipt(fromBase64(body.receipt, 'receipt')) : undefined
  }

  /** Devnet money, once it is there. */
  async fund(account: Id, usd: string): Promise<Receipt> {
    const { status, body } = await this.post<SubmittedJson>('/v1/faucet', { account, amount: usd })
    const receipt = status === 202 ? await this.receipt(body.digest) : undefined
    if (receipt === undefined) throw new Error(`the faucet answered ${status}: ${JSON.stringify(body)}`)
    return receipt
  }

  /** Signs and submits a transfer, and waits for its receipt. */
  async pay(from: { keys: DualKeys; id: Id }, to: Id, usd: string, more: Partial<Body> = {}): Promise<Receipt> {
    const body = await this.body(from.id, { kind: 'transfer', to, amount: parseUsd(usd, 'usd'), purpose: '' }, more)
    const { status, body: answer } = await this.submit(await sign(from.keys, body))
    const receipt = status === 202 ? await this.receipt(answer.digest) : undefined
    if (receipt === undefined) throw new Error(`the payment got ${status}: ${JSON.stringify(answer)}`)
    return receipt
  }
}

/** Signatures in which Pulses get stuck while `hold` is on: a crash or a stop in the middle is then no matter of luck. */
export function holdableSignatures(): { signatures: Signatures; hold(): void; release(): void; whenHeld(): Promise<void> } {
  let released: Promise<void> | undefined
  let release = (): void => {}
  let onHeld = (): void => {}
  let held = Promise.resolve()
  const signatures: Signatures = {
    ...inlineSignatures,
    async sign(scheme, keys, message) {
      if (scheme === 'slh-dsa-sha2-128f' && released !== undefined) {
        onHeld()
        await released
      }
      return inlineSignatures.sign(scheme, keys, message)
    },
  }
  return {
    signatures,
    hold() {
      released = new Promise((resolve) => (release = resolve))
      held = new Promise((resolve) => (onHeld = resolve))
    },
    release() {
      released = undefined
      release()
    },
    whenHeld: () => held,
  }
}
