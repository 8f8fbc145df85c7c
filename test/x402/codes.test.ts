import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { CODES, isCode, refuse } from '../../src/x402/codes.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
}

describe('the table of codes', () => {
  it('has only stable names, statuses of ours and advice for each', () => {
    for (const [code, { status, advice }] of Object.entries(CODES)) {
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
      expect([400, 402, 503]).toContain(status)
      expect(advice).toMatch(/\.$/)
    }
  })

  it('has every code that is refused with, and no code that nothing is refused with', () => {
    const text = [...sources('src/x402'), ...sources('src/facilitator'), ...sources('src/desk'), ...sources('src/light')].join('\n')
    const table = text.slice(text.indexOf('export const CODES'), text.indexOf('export type Code'))
    const elsewhere = text.replace(table, '')
    for (const [, code] of elsewhere.matchAll(/\brefuse\(\s*'([^']*)'/g)) expect(isCode(code)).toBe(true)
    for (const code of Object.keys(CODES)) expect(elsewhere, code).toContain(`'${code}'`)
  })

  it('tells a code from any other value, also one that every object has', () => {
    expect(isCode('payment_used')).toBe(true)
    for (const value of ['toString', '__proto__', '', 'PAYMENT_USED', 400, null, undefined, {}]) expect(isCode(value)).toBe(false)
  })

  it('makes refusals that carry what they know', () => {
    expect(refuse('payment_used', 'because', { payer: 'p' })).toEqual({ kind: 'refused', code: 'payment_used', reason: 'because', payer: 'p' })
  })
})
