import { InputError } from './errors.js'
import { describe, quote } from './hex.js'

/** Micro-USD: one millionth of a dollar. All money in code is this, as a bigint. */
export type MicroUsd = bigint

/** The largest amount anywhere: 2^53 − 1 micro-USD, so that it is exact as a JSON number too. */
export const MAX_AMOUNT: MicroUsd = 2n ** 53n - 1n

const decimalForm = /^(0|[1-9][0-9]*)(?:\.([0-9]+))?$/

/**
 * Micro-USD of a decimal USD text such as `0.25`. Exact, never through a float.
 * @throws InputError naming `field`: a sign, an exponent, spaces, more than 6 decimals, more than {@link MAX_AMOUNT}.
 */
export function parseUsd(text: unknown, field: string): MicroUsd {
  if (typeof text !== 'string') {
    throw new InputError(field, `expected USD as decimal text such as "0.25", not ${describe(text)}`)
  }
  const match = decimalForm.exec(text)
  if (match === null) throw new InputError(field, `expected USD in decimal, such as 0.25, not ${quote(text)}`)
  const [, whole = '', decimals = ''] = match
  if (decimals.length > 6) {
    throw new InputError(field, `${quote(text)} has ${decimals.length} decimals; USD has at most 6`)
  }
  if (whole.length > 16) throw new InputError(field, `${quote(text)} is more than the largest amount, ${formatUsd(MAX_AMOUNT)}`)
  const amount = BigInt(whole) * 1_000_000n + BigInt(decimals.padEnd(6, '0'))
  if (amount > MAX_AMOUNT) {
    throw new InputError(field, `${quote(text)} is more than the largest amount, ${formatUsd(MAX_AMOUNT)}`)
  }
  return amount
}

/** Decimal USD without trailing zeros: `250000n` is `0.25`. */
export function formatUsd(amount: MicroUsd): string {
  const sign = amount < 0n ? '-' : ''
  const absolute = amount < 0n ? -amount : amount
  const decimals = (absolute % 1_000_000n).toString().padStart(6, '0').replace(/0+$/, '')
  return `${sign}${absolute / 1_000_000n}${decimals === '' ? '' : `.${decimals}`}`
}

/**
 * Micro-USD of a whole-number text, as x402 carries `amount`: digits only, no sign, no leading zero.
 * @throws InputError naming `field`.
 */
export function parseMicroUsd(text: unknown, field: string): MicroUsd {
  if (typeof text !== 'string' || !/^(0|[1-9][0-9]{0,15})$/.test(text)) {
    throw new InputError(
      field,
      `expected micro-USD as a whole number in text, not ${typeof text === 'string' ? quote(text) : describe(text)}`,
    )
  }
  const amount = BigInt(text)
  if (amount > MAX_AMOUNT) throw new InputError(field, `${text} is more than the largest amount, ${MAX_AMOUNT}`)
  return amount
}
