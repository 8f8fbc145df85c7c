// Buys one answer. SION_CHAIN=<chain identity> node examples/buyer/index.mjs http://127.0.0.1:8402/report
import { devnetWallet, formatUsd, PaymentError, payingFetch, settlementOf } from 'sion-x402'
import { fileAttempts } from 'sion-x402/fetch/node'
import { openWalletStore, sionHome } from 'sion-x402/sdk/node'

const { SION_CHAIN: chain, SION_NODE: node, WALLET = 'dana' } = process.env
const [url] = process.argv.slice(2)

// A wallet made with `sion wallet new`, or else the devnet wallet of that name, which is worth nothing elsewhere.
const wallet = (await openWalletStore(sionHome()).load(WALLET)) ?? devnetWallet(WALLET)
const pay = payingFetch({
  wallet,
  chain,
  node,
  maxPerRequest: '0.5',
  maxTotal: '5',
  // On disk before it is sent: after a crash the same call sends the same payment.
  attempts: fileAttempts('buyer-attempts'),
  onQuote: ({ amount, required }) => console.error(`${required.resource.description}: ${formatUsd(amount)} USD`),
})

try {
  const response = await pay(url)
  console.log(await response.text())
  const settlement = settlementOf(response)
  if (settlement?.success) console.error(`paid with transaction ${settlement.transaction}`)
  process.exitCode = response.ok ? 0 : 1
} catch (error) {
  if (!(error instanceof PaymentError)) throw error
  console.error(`${error.code}: ${error.message}`)
  // Only `outcome_unknown` may have cost something; the same call, made again, sends the same payment.
  process.exitCode = error.code === 'outcome_unknown' ? 5 : 3
}
