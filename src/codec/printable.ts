/**
 * Characters that change what is around them instead of being seen: control characters (a terminal obeys them, the C1
 * ones too), line and paragraph separators, and marks that turn the direction of writing (a sentence to be signed could
 * read otherwise than it is). Spelled out, since classes such as `\p{Bidi_Control}` grow with a runtime's Unicode version
 * and every validator must refuse the same.
 */
const invisible = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069'
const one = new RegExp(`[${invisible}]`)
const all = new RegExp(`[${invisible}]`, 'g')

/** Whether a text can be shown as it is: no lone surrogate and none of the characters above. */
export function isPrintable(text: string): boolean {
  return text.isWellFormed() && !one.test(text)
}

/** The same text with `\u` escapes where {@link isPrintable} would object, except for lone surrogates. */
export function escaped(text: string): string {
  return text.replace(all, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
