import type { MicroUsd } from '../codec/index.js'
import { usd } from './price.js'
import type { Charge, SellerScheme } from './scheme.js'
import { X402_VERSION, type PaymentRequired, type PaymentRequirements } from './wire.js'

export interface RequiredOptions {
  /** In the order in which a 402 offers them. */
  readonly schemes: readonly SellerScheme[]
  readonly origin?: string | undefined
  readonly description?: string | undefined
  readonly mimeType?: string | undefined
}

/** What a route's 402 says. */
export interface Required {
  of(charge: Charge, path: string, error?: string): Promise<PaymentRequired>
  /** {@link of} as JSON, without an error. Unpaid requests are the many: mostly only the nonce is written anew. */
  json(charge: Charge, path: string): Promise<string>
}

/** Paths and prices whose JSON is remembered; where there are more, all are forgotten and remembered anew. */
const MOST_FORMS = 256
const LONGEST_PATH = 256

export function requiredOf({ schemes, origin, description, mimeType }: RequiredOptions): Required {
  /** By path, amount and chain: the JSON cut where its nonce stands. */
  const forms = new Map<string, readonly string[]>()
  const steady = schemes.every((scheme) => scheme.nonce !== undefined)

  async function of(charge: Charge, path: string, error?: string): Promise<PaymentRequired> {
    const accepts: PaymentRequirements[] = []
    for (const scheme of schemes) {
      const quoted = await scheme.quote(charge)
      if (quoted !== undefined) accepts.push(quoted)
    }
    return {
      x402Version: X402_VERSION,
      ...(error === undefined ? {} : { error }),
      resource: {
        url: `${origin ?? ''}${path}`,
        description: description ?? defaultDescription(path, charge.amount),
        mimeType: mimeType ?? 'application/json',
      },
      accepts,
    }
  }

  /** The one nonce in all that is offered; undefined where there is none. */
  async function freshNonce(charge: Charge): Promise<string | undefined> {
    for (const scheme of schemes) {
      const nonce = await scheme.nonce?.(charge)
      if (nonce !== undefined) return nonce
    }
    return undefined
  }

  return {
    of,
    async json(charge, path) {
      const key = `${charge.amount} ${charge.chain} ${path}`
      const form = forms.get(key)
      if (form !== undefined) return form.join(await freshNonce(charge))
      const required = await of(charge, path)
      const json = JSON.stringify(required)
      if (steady && path.length <= LONGEST_PATH) {
        if (forms.size >= MOST_FORMS) forms.clear()
        const nonces = required.accepts.map(({ extra }) => extra['nonce']).filter((nonce) => typeof nonce === 'string')
        if (nonces.length <= 1) forms.set(key, nonces[0] === undefined ? [json] : json.split(nonces[0]))
      }
      return json
    },
  }
}

function defaultDescription(path: string, amount: MicroUsd): string {
  return `${path}, ${usd(amount)} per request`
}
