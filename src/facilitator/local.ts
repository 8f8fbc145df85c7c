import { fromHex, InputError, messageOf, parseMicroUsd, SionError, toHex, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import type { DualPublicKeys } from '../crypto/keys.js'
import type { Signatures } from '../crypto/signatures.js'
import { accountOf, encodeSigned, type SignedTransaction } from '../ledger/index.js'
import { isNodeAway, LightClientError, type LightClient, type VerifiedReceipt } from '../light/index.js'
import { networkOf } from '../pulse/index.js'
import type { NodeClient } from '../sdk/node-client.js'
import { refuse, type Code, type Refusal } from '../x402/codes.js'
import { checkBody, parseExactPayload, referenceMessage, type ExactPayment } from '../x402/exact/payment.js'
import { checkAccepted, exactRequirements, nonceOf } from '../x402/exact/terms.js'
import { SETTLEMENT_PENDING, type Facilitator } from '../x402/facilitator.js'
import type { Logger } from '../x402/logger.js'
import type { PaymentPayload, PaymentRequirements, SettleResponse, VerifyResponse } from '../x402/wire.js'
import { Recent } from './recent.js'

export interface LocalFacilitatorOptions {
  readonly light: LightClient
  /** Submits what the payer signed. */
  readonly node: Pick<NodeClient, 'submit'>
  readonly signatures: Pick<Signatures, 'verify'>
  /** How long a settlement waits for its receipt before it is `settlement_pending`. */
  readonly settleWaitSeconds: number
  readonly logger: Logger
}

/** A payment that is what it should be, as far as it can be known without the ledger moving. */
interface Checked {
  readonly kind: 'checked'
  readonly exact: ExactPayment
  readonly payer: Id
  /** Where the payer submitted the transaction itself: its proven receipt. */
  readonly receipt?: VerifiedReceipt
}

const REMEMBERED = 4_096

/**
 * The facilitator of `exact` in this process: checks payments, submits them, and believes a receipt only as a light
 * client does. It keeps no record of what was settled: asked again for the same payment, it says the same again.
 */
export function localFacilitator(options: LocalFacilitatorOptions): Facilitator {
  const { light, node, signatures, settleWaitSeconds, logger } = options
  /** Keys never change once the ledger has recorded them, so they are proven once. */
  const keysOf = new Recent<Id, DualPublicKeys>(REMEMBERED)
  /** Signed transactions whose signatures were good, by a hash of all their bytes. */
  const good = new Recent<string, true>(REMEMBERED)

  /** A node that hangs must not hang its askers. */
  const inTime = (): AbortSignal => AbortSignal.timeout(settleWaitSeconds * 1_000)

  async function check(payment: PaymentPayload, requirements: PaymentRequirements): Promise<Checked | Refusal> {
    const { chain } = await light.trust()
    const nonce = nonceOf(requirements)
    if (requirements.scheme !== 'exact') return refuse('unsupported_scheme', 'only `exact` is settled here')
    if (requirements.network !== networkOf(chain)) {
      return refuse('invalid_network', `this facilitator settles on ${networkOf(chain)}`)
    }
    if (nonce === undefined) return refuse('invalid_payment_requirements', 'extra.nonce is not 32 hex digits')
    const amount = parseMicroUsd(requirements.amount, 'amount')
    const expected = exactRequirements({ chain, payee: requirements.payTo, amount, nonce })
    const mismatch = checkAccepted(requirements, expected) ?? checkAccepted(payment.accepted, expected)
    if (mismatch !== undefined) return mismatch

    const exact = parseExactPayload(payment.payload)
    return exact.kind === 'transaction'
      ? checkTransaction(exact, expected, nonce)
      : checkReference(exact, expected, nonce)
  }

  async function checkTransaction(
    exact: ExactPayment & { kind: 'transaction' },
    requirements: PaymentRequirements,
    nonce: string,
  ): Promise<Checked | Refusal> {
    const { transaction } = exact
    const payer = transaction.body.signer
    const problem = checkBody(transaction.body, requirements, nonce)
    if (problem !== undefined) return problem
    const fingerprint = fingerprintOf(transaction)
    if (good.get(fingerprint) === undefined) {
      const keys = await keysFor(payer, transaction)
      if ('kind' in keys) return keys
      const message = fromHex(exact.digest, 'digest', 32)
      const checks = [signatures.verify('ml-dsa-44', keys.mlDsa, message, transaction.mlDsa)]
      if (transaction.slhDsa !== undefined) {
        checks.push(signatures.verify('slh-dsa-sha2-128f', keys.slhDsa, message, transaction.slhDsa))
      }
      if ((await Promise.all(checks)).includes(false)) {
        return refuse('invalid_signature', 'the transaction’s signature is not good', { payer })
      }
      good.set(fingerprint, true)
    }
    return { kind: 'checked', exact, payer }
  }

  /** The payer's keys: sent along where they derive its id, else as the ledger recorded them. */
  async function keysFor(payer: Id, { keys }: { keys?: DualPublicKeys | undefined }): Promise<DualPublicKeys | Refusal> {
    if (keys !== undefined) {
      return accountOf(keys) === payer ? keys : refuse('unknown_keys', 'the keys sent along are not the payer’s', { payer })
    }
    const known = keysOf.get(payer)
    if (known !== undefined) return known
    const { object } = await light.object(payer, { signal: inTime() })
    if (object?.kind !== 'account' || object.keys === undefined) {
      return refuse('unknown_keys', 'the ledger does not know the payer’s keys yet: send them along', { payer })
    }
    keysOf.set(payer, object.keys)
    return object.keys
  }

  async function checkReference(
    exact: ExactPayment & { kind: 'reference' },
    requirements: PaymentRequirements,
    nonce: string,
  ): Promise<Checked | Refusal> {
    const signal = inTime()
    const receipt = await light.receipt(exact.digest, { waitSeconds: settleWaitSeconds, signal })
    if (receipt === undefined) return refuse('settlement_pending', SETTLEMENT_PENDING)
    const body = await light.body(exact.digest, { signal })
    const problem = checkBody(body, requirements, nonce)
    if (problem !== undefined) return problem
    const payer = body.signer
    const keys = await keysFor(payer, {})
    if ('kind' in keys) return keys
    if (!(await signatures.verify('ml-dsa-44', keys.mlDsa, referenceMessage(exact.digest, nonce), exact.proof))) {
      return refuse('invalid_signature', 'the proof is not the payer’s signature over digest and nonce', { payer })
    }
    return { kind: 'checked', exact, payer, receipt }
  }

  async function execute(checked: Checked): Promise<VerifiedReceipt | Refusal> {
    const { exact, payer } = checked
    if (checked.receipt !== undefined) return checked.receipt
    const giveUpAt = performance.now() + settleWaitSeconds * 1_000
    const signal = inTime()
    if (exact.kind === 'transaction') {
      const submitted = await node.submit(encodeSigned(exact.transaction), { signal })
      if (submitted.kind === 'refused') {
        return refuse(REFUSED[submitted.code] ?? 'transaction_refused', `the ledger refused the payment: ${submitted.reason}`, { payer })
      }
    }
    const waitSeconds = Math.max(0, (giveUpAt - performance.now()) / 1_000)
    const receipt = await light.receipt(exact.digest, { waitSeconds, signal })
    return receipt ?? refuse('settlement_pending', SETTLEMENT_PENDING, { payer })
  }

  async function settle(payment: PaymentPayload, requirements: PaymentRequirements): Promise<SettleResponse> {
    const { network } = requirements
    let payer: Id | undefined
    try {
      const checked = await check(payment, requirements)
      if (checked.kind === 'refused') return failure(checked, network)
      ;({ payer } = checked)
      const executed = await execute(checked)
      if ('kind' in executed) return failure(executed, network)
      const { receipt, header, chain, certificate } = executed
      if (receipt.outcome.kind === 'failed') {
        const reason = `the ledger refused the payment: ${receipt.outcome.reason}`
        return failure(refuse('transaction_failed', reason, { payer, transaction: receipt.digest }), network)
      }
      return {
        success: true,
        payer,
        transaction: receipt.digest,
        network,
        extensions: {
          sion: {
            chain,
            pulse: header.number,
            quorum: Number(certificate.quorum),
            signedStake: Number(certificate.signed),
          },
        },
      }
    } catch (error) {
      return failure(failureOf(error, payer), network)
    }
  }

  /** What went wrong, as an answer; only what is broken on this side is thrown. */
  function failureOf(error: unknown, payer: Id | undefined): Refusal {
    const more = payer === undefined ? {} : { payer }
    if (error instanceof InputError) return refuse('invalid_payload', error.message, more)
    if (isNodeAway(error) || isTimeout(error) || (error instanceof SionError && error.code === 'chain_halted')) {
      logger.warn(`the ledger is away: ${messageOf(error)}`)
      return refuse('settlement_pending', SETTLEMENT_PENDING, more)
    }
    if (error instanceof LightClientError) {
      // The node says what it cannot prove. What became of the payment is unknown until an honest node is asked.
      logger.error(`the node is not to be believed (${error.code}): ${error.message}`)
      return refuse('settlement_pending', SETTLEMENT_PENDING, more)
    }
    throw error
  }

  return {
    async verify(payment, requirements): Promise<VerifyResponse> {
      let result: Checked | Refusal
      try {
        result = await check(payment, requirements)
      } catch (error) {
        result = failureOf(error, undefined)
      }
      if (result.kind === 'checked') return { isValid: true, payer: result.payer }
      return {
        isValid: false,
        invalidReason: result.reason,
        ...(result.payer === undefined ? {} : { payer: result.payer }),
        extensions: { sion: { code: result.code } },
      }
    },

    settle,

    async supported() {
      const { chain } = await light.trust()
      return {
        kinds: [{ x402Version: 2, scheme: 'exact', network: networkOf(chain), extra: { chain, decimals: 6 } }],
        extensions: [],
        signers: {},
      }
    },
  }
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError'
}

/** The node's codes for a transaction that it does not take, in x402's words. */
const REFUSED: Readonly<Record<string, Code>> = {
  insufficient_balance: 'insufficient_funds',
  insufficient_fee: 'insufficient_funds',
  unknown_keys: 'unknown_keys',
  wrong_keys: 'unknown_keys',
  bad_signature: 'invalid_signature',
  missing_signature: 'invalid_signature',
}

function failure({ code, reason, payer, transaction, details }: Refusal, network: SettleResponse['network']): SettleResponse {
  return {
    success: false,
    errorReason: reason,
    ...(payer === undefined ? {} : { payer }),
    transaction: transaction ?? '',
    network,
    extensions: { sion: { ...details, code } },
  }
}

function fingerprintOf(transaction: SignedTransaction): string {
  return toHex(taggedHash('sion/verified-transaction/v1', encodeSigned(transaction)))
}
