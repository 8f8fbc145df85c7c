import { PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE } from './headers.js'

/** What both adapters do to the headers of an answer, so that they do the same. */

const NONE: Record<string, string> = {}
const OURS = [PAYMENT_REQUIRED, PAYMENT_RESPONSE, PAYMENT_SIGNATURE]

/** `private` merged into whatever the handler said: a paid answer is not for a shared cache (RFC 9111 §5.2.2.7). */
export function privateCacheControl(handlers: string | undefined): string {
  if (handlers === undefined) return 'private'
  // Commas may stand within quotes: `no-cache="Set-Cookie, ETag"`.
  const directives = handlers.match(/(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g) ?? []
  const kept = directives
    .map((directive) => directive.trim())
    .filter((directive) => directive !== '' && !/^(?:public|private|s-maxage)\s*(?:=|$)/i.test(directive))
  return ['private', ...kept].join(', ')
}

/**
 * What the app's CORS headers need so that a browser's script can pay: the three headers exposed, and on a preflight the
 * payment's header allowed. Nothing where the app does not use CORS.
 *
 * @param said The app's own headers so far.
 */
export function corsHeaders(method: string | undefined, said: (name: string) => string | undefined): Record<string, string> {
  if (said('Access-Control-Allow-Origin') === undefined) return NONE
  const exposed = { 'Access-Control-Expose-Headers': withNames(said('Access-Control-Expose-Headers'), OURS) }
  if (method !== 'OPTIONS') return exposed
  return { ...exposed, 'Access-Control-Allow-Headers': withNames(said('Access-Control-Allow-Headers'), [PAYMENT_SIGNATURE]) }
}

/** Where our answer takes the place of the handler's, these of its headers stay: a browser could not read ours without. */
export function keptOnReplacement(name: string): boolean {
  return /^(?:access-control-.*|vary|date)$/i.test(name)
}

function withNames(list: string | undefined, wanted: readonly string[]): string {
  const names = (list ?? '').split(',').map((name) => name.trim()).filter((name) => name !== '')
  if (names.includes('*')) return names.join(', ')
  const known = new Set(names.map((name) => name.toLowerCase()))
  return [...names, ...wanted.filter((name) => !known.has(name.toLowerCase()))].join(', ')
}
