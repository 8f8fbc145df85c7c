// Another server of the same seller: opens the folder, says so, and on a word claims one nonce fifty times at once.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { embeddedNonceStore } from '../../../dist/x402/stores/embedded.js'

const [folder, nonce, payment] = process.argv.slice(2)
const store = embeddedNonceStore({ folder })
process.send('ready')
await once(process, 'message')
const keepUntil = Math.floor(Date.now() / 1_000) + 1_000
const answers = await Promise.all(
  Array.from({ length: 50 }, () =>
    store.claim({ nonce, payment, holder: randomBytes(16).toString('hex'), leaseMs: 60_000, keepUntil }),
  ),
)
const secret = Buffer.from(await store.secret()).toString('hex')
await store.close()
process.send({ answers, secret }, () => process.disconnect())
