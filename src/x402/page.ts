import { formatUsd, type MicroUsd } from '../codec/index.js'
import type { PaymentRequired } from './wire.js'

/** Whether an `Accept` header prefers `text/html` to JSON, as a browser's does and a program's does not. */
export function prefersHtml(accept: string | undefined): boolean {
  if (accept === undefined) return false
  let html = 0
  let json = 0
  for (const range of accept.split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const q = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = q === undefined ? 1 : Number(q.slice(2)) || 0
    if (type === 'text/html') html = Math.max(html, weight)
    if (type === 'application/json') json = Math.max(json, weight)
  }
  return html > json
}

/** The 402 for a person: what it costs, what it buys, how to pay. No script, nothing loaded from elsewhere. */
export function paywallPage({ resource, accepts, error }: PaymentRequired, amount: MicroUsd): string {
  const price = `${formatUsd(amount)} USD`
  const rows = accepts
    .map(({ scheme, network, payTo }) => `<tr><td>${escape(scheme)}</td><td>${escape(network)}</td><td>${escape(payTo)}</td></tr>`)
    .join('')
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Payment required: ${escape(price)}</title>
<style>
body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color:#1c2530;background:#fbfbf9}
h1{font-size:1.4rem}strong{font-size:2rem}code,td{font-family:ui-monospace,monospace;font-size:.85rem;overflow-wrap:anywhere}
pre{background:#eef0ea;padding:1rem;overflow:auto}td,th{text-align:left;padding:.3rem 1rem .3rem 0;vertical-align:top}
.error{color:#a22}@media(prefers-color-scheme:dark){body{color:#e4e7ea;background:#16191d}pre{background:#22272e}.error{color:#f88}}
</style></head><body>
<h1>Payment required</h1>
<p><strong>${escape(price)}</strong> for one request</p>
<p>${escape(resource.description ?? resource.url)}</p>
${error === undefined ? '' : `<p class="error">The last payment was refused: ${escape(error)}</p>`}
<h2>How to pay</h2>
<p>This address is sold to programs with x402. From a terminal:</p>
<pre>sion x402 fetch URL --wallet NAME --max ${escape(formatUsd(amount))}</pre>
<table><tr><th>scheme</th><th>network</th><th>paid to</th></tr>${rows}</table>
</body></html>
`
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}
