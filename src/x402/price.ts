import { describe, formatUsd, InputError, parseUsd, type MicroUsd } from '../codec/index.js'

/** Decimal USD as text, such as `0.25`; or `free`, which is the only way to ask nothing. */
export type Price = string

/**
 * Micro-USD of a price; 0n for `free`.
 * @throws InputError naming `field`: not decimal, more than 6 decimals, zero without saying `free`.
 */
export function parsePrice(price: unknown, field = 'price'): MicroUsd {
  if (price === 'free') return 0n
  if (typeof price !== 'string') {
    throw new InputError(field, `expected USD as decimal text such as "0.25", or "free", not ${describe(price)}`)
  }
  const amount = parseUsd(price, field)
  if (amount === 0n) throw new InputError(field, 'a price of 0 must be said as "free"')
  return amount
}

/** How sentences say a price: `0.25 USD`. */
export function usd(amount: MicroUsd): string {
  return `${formatUsd(amount)} USD`
}
