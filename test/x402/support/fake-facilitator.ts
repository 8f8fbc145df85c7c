import { networkOf } from '../../../src/pulse/index.js'
import { parseExactPayload } from '../../../src/x402/exact/payment.js'
import type { Facilitator } from '../../../src/x402/facilitator.js'
import type { PaymentPayload, SettleResponse, SupportedResponse, VerifyResponse } from '../../../src/x402/wire.js'
import { CHAIN, PAYER } from './payments.js'

/** A facilitator that settles everything, until a test says otherwise. */
export interface FakeFacilitator extends Facilitator {
  readonly verified: PaymentPayload[]
  readonly settled: PaymentPayload[]
  readonly askers: (string | undefined)[]
  /** What it says instead, or throws. */
  onVerify: ((payment: PaymentPayload) => Promise<VerifyResponse>) | undefined
  onSettle: ((payment: PaymentPayload) => Promise<SettleResponse>) | undefined
  onSupported: (() => Promise<SupportedResponse>) | undefined
}

export function fakeFacilitator(chain = CHAIN): FakeFacilitator {
  const fake: FakeFacilitator = {
    verified: [],
    settled: [],
    askers: [],
    onVerify: undefined,
    onSettle: undefined,
    onSupported: undefined,
    async verify(payment) {
      fake.verified.push(payment)
      return fake.onVerify === undefined ? { isValid: true, payer: PAYER } : fake.onVerify(payment)
    },
    async settle(payment, _requirements, asker) {
      fake.settled.push(payment)
      fake.askers.push(asker)
      return fake.onSettle === undefined ? successFor(payment, chain) : fake.onSettle(payment)
    },
    async supported() {
      if (fake.onSupported !== undefined) return fake.onSupported()
      return {
        kinds: [{ x402Version: 2, scheme: 'exact', network: networkOf(chain), extra: { chain, decimals: 6 } }],
        extensions: [],
        signers: {},
      }
    },
  }
  return fake
}

/** What an honest facilitator says of a payment that settled. */
export function successFor(payment: PaymentPayload, chain = CHAIN): SettleResponse {
  return {
    success: true,
    payer: PAYER,
    transaction: parseExactPayload(payment.payload).digest,
    network: networkOf(chain),
    extensions: { sion: { chain, pulse: 7 } },
  }
}
