// A buyer, as its compiler sees the package: nothing here needs Node's types.
import { formatUsd, payingFetch, settlementOf, walletFromSeed, type PayingFetch, type Wallet } from 'sion-x402'
import { memoryAttempts, PaymentError, type PaymentErrorCode } from 'sion-x402/fetch'
import { createLightClient, httpTransport, type VerifiedReceipt } from 'sion-x402/light'
import { pay, type Outcome } from 'sion-x402/sdk'
import { CODES, decodePaymentRequired, type Code, type PaymentRequired } from 'sion-x402/wire'

const wallet: Wallet = walletFromSeed(new Uint8Array(32))
export const client: PayingFetch = payingFetch({ wallet, maxPerRequest: '0.5', attempts: memoryAttempts() })

export async function buy(url: string): Promise<{ text: string; receipt: VerifiedReceipt | undefined }> {
  const response: Response = await client(url)
  const light = createLightClient({ transport: httpTransport('http://127.0.0.1:8730') })
  const settlement = settlementOf(response)
  const receipt = settlement === undefined ? undefined : await light.receipt(settlement.transaction)
  return { text: await response.text(), receipt }
}

export function codeOf(error: unknown): PaymentErrorCode | undefined {
  return error instanceof PaymentError ? error.code : undefined
}

export function describe(header: string, code: Code): string {
  const required: PaymentRequired = decodePaymentRequired(header)
  return `${required.accepts.length} ${CODES[code].advice} ${formatUsd(client.spent())}`
}

export const transfer: (...args: Parameters<typeof pay>) => Promise<Outcome> = pay
