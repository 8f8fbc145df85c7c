// Sells routes of an Express 5 app. PAY_TO=<account> SION_CHAIN=<chain identity> node examples/express-seller/index.mjs
import express from 'express'
import { formatUsd } from 'sion-x402'
import { paywall } from 'sion-x402/express'
import { embeddedNonceStore } from 'sion-x402/stores'

const { PAY_TO: payTo, SION_CHAIN: chain, SION_NODE: node, DATA: folder = 'seller-data', PORT = '8402' } = process.env
const charge = paywall({ payTo, chain, node, store: embeddedNonceStore({ folder }) })
const app = express()

// A fixed price.
app.get('/report', charge('0.25'), (request, response) => {
  response.json({ report: 'sunny' })
})

// A price computed from the request: 0.001 USD a character. It is quoted for this query and buys nothing else.
const perCharacter = ({ query }) => formatUsd(1_000n * BigInt(String(query.text).length))
const hasText = ({ query }, response, next) => {
  if (typeof query.text === 'string' && query.text !== '') next()
  else response.status(400).json({ error: 'text: nothing to shout' })
}
app.get('/shout', hasText, charge({ price: perCharacter }), (request, response) => {
  response.json({ shouted: request.query.text.toUpperCase() })
})

// A free case, and what a buyer is told about the rest.
const price = ({ query }) => (query.rows === '1' ? 'free' : '0.05')
app.get('/table', charge({ price, description: 'all rows; ?rows=1 is free', mimeType: 'text/csv' }), (request, response) => {
  response.type('text/csv').send(request.query.rows === '1' ? 'day,high\nMon,21\n' : 'day,high\nMon,21\nTue,23\n')
})

// After the app's own validation: what it refuses costs nothing.
const cities = new Map([['oslo', 4]])
const known = ({ params }, response, next) => {
  if (cities.has(params.city)) next()
  else response.status(404).json({ error: `no city ${params.city}` })
}
app.get('/weather/:city', known, charge('0.01'), (request, response) => {
  response.json({ celsius: cities.get(request.params.city) })
})

// Before a whole router.
const archive = express.Router()
archive.get('/:year', (request, response) => {
  response.json({ year: request.params.year, days: 365 })
})
app.use('/archive', charge({ price: '0.02', description: 'one year of the archive' }), archive)

const server = app.listen(Number(PORT), '127.0.0.1', (error) => {
  if (error) throw error
  console.log(`selling at http://127.0.0.1:${server.address().port}`)
})
process.once('SIGTERM', () => server.close(() => charge.close()))
