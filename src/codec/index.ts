export { base64ToText, fromBase64, textToBase64, toBase64 } from './base64.js'
export { InputError, messageOf, SionError } from './errors.js'
export { describe, fromHex, isId, parseId, quote, shortId, toHex, type Id } from './hex.js'
export { formatUsd, MAX_AMOUNT, parseMicroUsd, parseUsd, type MicroUsd } from './usd.js'
