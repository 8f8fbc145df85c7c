// Sells routes of a Hono app. PAY_TO=<account> SION_CHAIN=<chain identity> node examples/hono-seller/index.mjs
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { formatUsd } from 'sion-x402'
import { paywall } from 'sion-x402/hono'
import { embeddedNonceStore } from 'sion-x402/stores'

const { PAY_TO: payTo, SION_CHAIN: chain, SION_NODE: node, DATA: folder = 'seller-data', PORT = '8402' } = process.env
const charge = paywall({ payTo, chain, node, store: embeddedNonceStore({ folder }) })
const app = new Hono()

// A fixed price.
app.get('/report', charge('0.25'), (c) => c.json({ report: 'sunny' }))

// A price computed from the request: 0.001 USD a character. It is quoted for this query and buys nothing else.
const hasText = (c, next) => (c.req.query('text') ? next() : c.json({ error: 'text: nothing to shout' }, 400))
const perCharacter = (c) => formatUsd(1_000n * BigInt(c.req.query('text').length))
app.get('/shout', hasText, charge({ price: perCharacter }), (c) => c.json({ shouted: c.req.query('text').toUpperCase() }))

// A free case, and what a buyer is told about the rest.
const price = (c) => (c.req.query('rows') === '1' ? 'free' : '0.05')
app.get('/table', charge({ price, description: 'all rows; ?rows=1 is free', mimeType: 'text/csv' }), (c) =>
  c.body(c.req.query('rows') === '1' ? 'day,high\nMon,21\n' : 'day,high\nMon,21\nTue,23\n', 200, { 'Content-Type': 'text/csv' }),
)

// After the app's own validation: what it refuses costs nothing.
const cities = new Map([['oslo', 4]])
const known = (c, next) => (cities.has(c.req.param('city')) ? next() : c.json({ error: `no city ${c.req.param('city')}` }, 404))
app.get('/weather/:city', known, charge('0.01'), (c) => c.json({ celsius: cities.get(c.req.param('city')) }))

// Before a whole router.
const archive = new Hono()
archive.get('/:year', (c) => c.json({ year: c.req.param('year'), days: 365 }))
app.use('/archive/*', charge({ price: '0.02', description: 'one year of the archive' }))
app.route('/archive', archive)

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(PORT) }, ({ port }) =>
  console.log(`selling at http://127.0.0.1:${port}`),
)
process.once('SIGTERM', () => server.close(() => charge.close()))
