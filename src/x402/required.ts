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
  /**
   * The JSON of {@link of} without an error, where all of it but the nonce is known from before: unpaid requests are the
   * many, and a promise for each would cost more than the quote. Undefined where it is not.
   */
  now(charge: Charge, path: string): string | undefined
}

/** Paths and prices whose JSON is remembered; where there are more, all are forgotten and remembered anew. */
const MOST_FORMS = 256
const LONGEST_PATH = 256

export function requiredOf({ schemes, origin, description, mimeType }: RequiredOptions): Required {
  /** By path, amount and chain: the JSON cut where its nonce stands. */
  const forms = new Map<string, readonly string[]>()
  const rememberable = schemes.every(({ quotesDiffer }) => quotesDiffer !== 'freely')
  const nonced = schemes.filter(({ quotesDiffer }) => quotesDiffer === 'by nonce')

  function remember(key: string, required: PaymentRequired): void {
    if (!rememberable || nonced.length > 1) return
    const json = JSON.stringify(required)
    const nonce = required.accepts.find(({ scheme }) => scheme === nonced[0]?.scheme)?.extra['nonce']
    if (forms.size >= MOST_FORMS) forms.clear()
    forms.set(key, typeof nonce === 'string' ? json.split(nonce) : [json])
  }

  return {
    async of(charge, path, error) {
      const accepts: PaymentRequirements[] = []
      for (const scheme of schemes) {
        const quoted = await scheme.quote(charge)
        if (quoted !== undefined) accepts.push(quoted)
      }
      const required: PaymentRequired = {
        x402Version: X402_VERSION,
        ...(error === undefined ? {} : { error }),
        resource: {
          url: `${origin ?? ''}${path}`,
          description: description ?? defaultDescription(path, charge.amount),
          mimeType: mimeType ?? 'application/json',
        },
        accepts,
      }
      if (error === undefined && path.length <= LONGEST_PATH) remember(keyOf(charge, path), required)
      return required
    },

    now(charge, path) {
      const form = forms.get(keyOf(charge, path))
      if (form === undefined || form.length === 1) return form?.[0]
      const nonce = nonced[0]?.nonce?.(charge)
      return nonce === undefined ? undefined : form.join(nonce)
    },
  }
}

function keyOf({ amount, chain }: Charge, path: string): string {
  return `${amount} ${chain} ${path}`
}

function defaultDescription(path: string, amount: MicroUsd): string {
  return `${path}, ${usd(amount)} per request`
}
