import { formatUsd, fromHex, InputError, toHex, type Id } from '../codec/index.js'
import type { DualKeys } from '../crypto/keys.js'
import { randomBytes } from '../crypto/runtime.js'
import type { Signatures } from '../crypto/signatures.js'
import { accountAt, accountOf, digestOf, encodeSigned, type Body } from '../ledger/index.js'
import type { Admission, Taken } from './admission.js'
import type { Chain } from './chain.js'
import type { Head } from './head.js'
import type { Refusal } from './refusal.js'

/** A call gives at most this, in micro-USD: 1,000,000 USD. */
export const MAX_FAUCET_AMOUNT = 1_000_000n * 1_000_000n

const VALID_PULSES = 100

/** Devnet money for whoever asks: an ordinary transfer, signed by the faucet's account. */
export class Faucet {
  readonly account: Id

  constructor(
    private readonly chain: Chain,
    private readonly keys: DualKeys,
    private readonly head: Head,
    private readonly signatures: Signatures,
    private readonly admission: Admission,
  ) {
    this.account = accountOf(keys.publicKeys)
  }

  /**
   * Pays `amount` micro-USD to `to`.
   * @throws InputError for nothing, more than {@link MAX_FAUCET_AMOUNT}, or the faucet's own account.
   */
  async pay(to: Id, amount: bigint): Promise<Taken | Refusal> {
    if (amount === 0n) throw new InputError('amount', 'expected more than 0 USD')
    if (amount > MAX_FAUCET_AMOUNT) {
      throw new InputError('amount', `the faucet gives at most ${formatUsd(MAX_FAUCET_AMOUNT)} USD a call, not ${formatUsd(amount)}`)
    }
    if (to === this.account) throw new InputError('account', 'is the faucet’s own')
    const body: Body = {
      chain: this.chain.id,
      signer: this.account,
      nonce: toHex(randomBytes(16)),
      validUntil: this.head.next + VALID_PULSES,
      action: { kind: 'transfer', to, amount, purpose: 'faucet' },
    }
    const mlDsa = await this.signatures.sign('ml-dsa-44', this.keys, fromHex(digestOf(body), 'digest', 32))
    const known = accountAt(this.head.state(), this.account)?.keys !== undefined
    return this.admission.submit(encodeSigned(known ? { body, mlDsa } : { body, mlDsa, keys: this.keys.publicKeys }))
  }
}
