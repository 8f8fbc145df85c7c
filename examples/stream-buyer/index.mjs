// Opens a stream to a seller, pays a hundred calls from it at the same time, and opens no other the next time.
// SION_CHAIN=<chain identity> node examples/stream-buyer/index.mjs http://127.0.0.1:8402/v1/resource
import { createLightClient, devnetWallet, formatUsd, httpTransport, parseUsd, payingFetch, PaymentError, settlementOf } from 'sion-x402'
import { createNodeClient, openStream } from 'sion-x402/sdk'
import { openStreamFiles, openWalletStore, sionHome } from 'sion-x402/sdk/node'
import { decodePaymentRequired, PAYMENT_REQUIRED } from 'sion-x402/wire'

const { SION_CHAIN: chain, SION_NODE: node = 'http://127.0.0.1:8730', WALLET = 'alice', CALLS = '100' } = process.env
const [url] = process.argv.slice(2)

// What the seller asks, before anything is paid.
const unpaid = await fetch(url)
const { accepts } = decodePaymentRequired(unpaid.headers.get(PAYMENT_REQUIRED))
const offer = accepts.find(({ scheme }) => scheme === 'stream')
if (offer === undefined) throw new Error(`${url} does not take streams`)

// Streams are kept in $SION_HOME/streams: one that pays this seller already is used again.
const files = openStreamFiles(sionHome())
const stream = (await streamTo(offer.payTo)) ?? (await open(offer.payTo))
const payer = await files.openPayer(stream)
const pay = payingFetch({ stream: payer, chain, maxPerRequest: '0.01', maxTotal: '1' })

const began = performance.now()
const answers = await Promise.allSettled(Array.from({ length: Number(CALLS) }, () => call()))
const seconds = (performance.now() - began) / 1000
await payer.close()

const served = answers.filter(({ value }) => value?.ok).length
console.log(`${served} of ${CALLS} calls served in ${seconds.toFixed(2)} s, ${formatUsd(pay.spent())} USD, up to position ${payer.position.used}`)
for (const { reason } of answers) {
  if (reason !== undefined) console.error(reason instanceof PaymentError ? `${reason.code}: ${reason.message}` : reason)
}
process.exitCode = served === Number(CALLS) ? 0 : 1

async function call() {
  const response = await pay(url)
  await response.text()
  return { ok: response.ok, position: settlementOf(response)?.extensions.sion.position }
}

async function streamTo(payee) {
  for (const id of await files.list()) {
    const secret = await files.load(id)
    if (secret.payee === payee && secret.chain === offer.extra.chain) return id
  }
}

/** Half a dollar in escrow, for 0.001 USD a step; what is not settled comes back after the last Pulse. */
async function open(payee) {
  const transport = httpTransport(node)
  const ledger = { client: createLightClient({ transport, chain }), node: createNodeClient(transport) }
  const wallet = (await openWalletStore(sionHome()).load(WALLET)) ?? devnetWallet(WALLET)
  const terms = { payee, stepValue: parseUsd('0.001', 'step'), length: 10_000, escrow: parseUsd('0.5', 'escrow') }
  const { outcome, secret } = await openStream(ledger, wallet, terms, {
    keep: files,
    onIntent: (sentence) => console.log(`${WALLET} signs: ${sentence}`),
  })
  if (outcome.kind !== 'settled') throw new Error(`the stream was not opened: ${outcome.kind} ${outcome.reason ?? ''}`)
  return secret.stream
}
