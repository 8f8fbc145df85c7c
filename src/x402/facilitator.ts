import type { PaymentPayload, PaymentRequirements, SettleResponse, SupportedResponse, VerifyResponse } from './wire.js'

/**
 * Who checks payments and has the ledger execute them, in this process or behind HTTP. It holds nobody's keys and no
 * money, and it believes no node: what it calls settled it has verified as a light client.
 *
 * All of these throw only when the facilitator itself is out of reach or broken (`facilitator_unavailable`,
 * `ledger_unavailable`); a payment that is not good is an answer. An outcome that is not known yet is an answer too: `success: false` with
 * `errorReason: "settlement_pending"`, and the same payment may be asked about again.
 */
export interface Facilitator {
  /** Whether the payment would settle as far as it can be known without the ledger moving. */
  verify(payment: PaymentPayload, requirements: PaymentRequirements): Promise<VerifyResponse>
  /**
   * Has the ledger execute the payment and verifies its receipt.
   *
   * @param asker Names who asks, in secret: the same asker gets the same success again, any other is refused once the
   *   payment has settled. Without it the payment settles once.
   */
  settle(payment: PaymentPayload, requirements: PaymentRequirements, asker?: string): Promise<SettleResponse>
  /**
   * For `stream`: the request that a payment was verified for failed, and its steps are unused again. Not of x402's
   * interface; without it they come back when the facilitator has waited for their settlement in vain.
   */
  release?(payment: PaymentPayload, requirements: PaymentRequirements): Promise<void>
  supported(): Promise<SupportedResponse>
}

/** `errorReason` of an outcome that is not known yet. */
export const SETTLEMENT_PENDING = 'settlement_pending'
