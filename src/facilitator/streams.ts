import { parseId, parseMicroUsd, toHex, type Id } from '../codec/index.js'
import type { Accepted, StreamDesk, StreamPayment } from '../desk/index.js'
import { networkOf } from '../pulse/index.js'
import type { Refusal } from '../x402/codes.js'
import { checkAccepted } from '../x402/exact/terms.js'
import type { Facilitator } from '../x402/facilitator.js'
import { parseStreamPayload } from '../x402/stream/payment.js'
import { refusedSteps, streamSettlement } from '../x402/stream/seller.js'
import { streamRequirements, type StreamOffer } from '../x402/stream/terms.js'
import type { PaymentPayload, PaymentRequirements, SettleResponse } from '../x402/wire.js'
import { Recent } from './recent.js'

export interface StreamFacilitatorOptions extends StreamOffer {
  readonly desk: StreamDesk
  readonly chain: () => Promise<Id>
  /** How long verified steps are kept for their settlement before they are unused again. Default 60. */
  readonly holdSeconds?: number
}

interface Read {
  readonly kind: 'read'
  readonly payment: StreamPayment
  readonly key: string
  readonly amount: bigint
  readonly payee: Id
  readonly chain: Id
}

/**
 * The facilitator of `stream`, over a desk that serves any number of payees. x402's two steps fit its ticket: `verify`
 * takes the steps for the request, `settle` says that it was served, and steps that are verified and never settled, or
 * released, are unused again. A `settle` alone does both. Held steps are this process's: verify and settle of one
 * payment must reach the same one.
 */
export function streamFacilitator(options: StreamFacilitatorOptions): Facilitator & { stop(): Promise<void> } {
  const { desk, chain, holdSeconds = 60, ...offer } = options
  const held = new Map<string, { ticket: Accepted; timer: ReturnType<typeof setTimeout> }>()
  const settled = new Recent<string, { asker: string; response: SettleResponse }>(4_096)

  async function read(payment: PaymentPayload, requirements: PaymentRequirements): Promise<Read | Refusal> {
    const id = await chain()
    const payee = parseId(requirements.payTo, 'payTo')
    const amount = parseMicroUsd(requirements.amount, 'amount')
    const expected = streamRequirements({ chain: id, payee, amount, ...offer })
    const mismatch = checkAccepted(requirements, expected) ?? checkAccepted(payment.accepted, expected)
    if (mismatch !== undefined) return mismatch
    const parsed = parseStreamPayload(payment.payload)
    const key = `${parsed.stream}:${parsed.position}:${toHex(parsed.value)}:${payee}:${amount}`
    return { kind: 'read', payment: parsed, key, amount, payee, chain: id }
  }

  async function take({ payment, amount, payee }: Read): Promise<Accepted | Refusal> {
    const taken = await desk.accept(payment, amount, payee)
    return taken.accepted ? taken : refusedSteps(taken, payment.stream)
  }

  function release(key: string): Promise<void> {
    const hold = held.get(key)
    if (hold === undefined) return Promise.resolve()
    clearTimeout(hold.timer)
    held.delete(key)
    return hold.ticket.fail()
  }

  return {
    async verify(payment, requirements) {
      const parsed = await read(payment, requirements)
      if (parsed.kind === 'refused') return invalid(parsed)
      const taken = await take(parsed)
      if ('kind' in taken) return invalid(taken)
      const { key } = parsed
      const timer = setTimeout(() => void release(key), holdSeconds * 1_000)
      held.set(key, { ticket: taken, timer })
      return { isValid: true, payer: taken.payer }
    },

    async settle(payment, requirements, asker = '') {
      const parsed = await read(payment, requirements)
      if (parsed.kind === 'refused') return failed(parsed, requirements)
      const { key } = parsed
      const before = settled.get(key)
      if (before !== undefined && asker !== '' && before.asker === asker) return before.response
      const hold = held.get(key)
      if (hold !== undefined) {
        clearTimeout(hold.timer)
        held.delete(key)
      }
      const taken = hold?.ticket ?? (await take(parsed))
      if ('kind' in taken) return failed(taken, requirements)
      taken.finish()
      const response = streamSettlement(taken, parsed.chain)
      settled.set(key, { asker, response })
      return response
    },

    async release(payment, requirements) {
      const parsed = await read(payment, requirements)
      if (parsed.kind === 'read') await release(parsed.key)
    },

    async supported() {
      const id = await chain()
      const { margin, window } = offer
      const extra = { chain: id, decimals: 6, margin, ...(window === 0 ? {} : { window }) }
      return { kinds: [{ x402Version: 2, scheme: 'stream', network: networkOf(id), extra }], extensions: [], signers: {} }
    },

    /** Steps that are held go back: their requests will not be settled here any more. */
    async stop() {
      await Promise.all([...held.keys()].map(release))
    },
  }
}

/** One facilitator for both schemes. */
export function bothSchemes(exact: Facilitator, stream: Facilitator): Facilitator {
  const of = ({ scheme }: PaymentRequirements): Facilitator => (scheme === 'stream' ? stream : exact)
  return {
    verify: (payment, requirements) => of(requirements).verify(payment, requirements),
    settle: (payment, requirements, asker) => of(requirements).settle(payment, requirements, asker),
    release: async (payment, requirements) => of(requirements).release?.(payment, requirements),
    async supported() {
      const [one, other] = await Promise.all([exact.supported(), stream.supported()])
      return { ...one, kinds: [...one.kinds, ...other.kinds] }
    },
  }
}

function invalid({ code, reason, details }: Refusal): { isValid: false; invalidReason: string; extensions: Record<string, unknown> } {
  return { isValid: false, invalidReason: reason, extensions: { sion: { ...details, code } } }
}

function failed({ code, reason, details }: Refusal, { network }: PaymentRequirements): SettleResponse {
  return { success: false, errorReason: reason, transaction: '', network, extensions: { sion: { ...details, code } } }
}

