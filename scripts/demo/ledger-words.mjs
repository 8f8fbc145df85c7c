import { provenAccount, verifiedReceiptJson, waitForReceipt } from 'sion-x402/sdk'

/** The first eight digits of an id. */
export const short = (id) => id.slice(0, 8)

/** A transaction's receipt, verified; throws where it did not execute. */
export async function verifiedReceipt(light, digest) {
  const receipt = await waitForReceipt(light, digest)
  if (receipt === undefined) throw new Error(`the ledger has not executed ${short(digest)}`)
  return receipt
}

/** What a verified receipt proves, as names and values; accounts are called by `names`. */
export function receiptFacts(verified, names) {
  const { certificate, header, receipt } = verified
  return [
    ['transaction', receipt.digest],
    ['outcome', verifiedReceiptJson(verified, (account) => names.get(account) ?? short(account)).receipt],
    ['Pulse', `${receipt.pulse}, place ${receipt.index + 1} of ${header.receiptCount} in its certified order`],
    ['certificate', `${certificate.signed} of ${certificate.total} stake signed (quorum ${certificate.quorum}), each ML-DSA-44 and SLH-DSA-SHA2-128f`],
  ]
}

/** An account's balance, proven against the state root of a certified Pulse. */
export async function balanceOf(light, id) {
  const { account, pulse } = await provenAccount(light, id)
  return { balance: account.balance, pulse }
}
