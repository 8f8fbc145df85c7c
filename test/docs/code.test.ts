import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { documents, headingsOf, readDocument, root } from './markdown.js'

const sources = readdirSync(`${root}src`, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path: `src/${path}`, text: readFileSync(`${root}src/${path}`, 'utf8') }))

describe('the documents and the code', () => {
  it('have the same tables of codes and the same help: where this fails, run npm run docs', () => {
    const checked = execFileSync(process.execPath, [`${root}scripts/docs.mjs`, '--check'], { encoding: 'utf8' })
    expect(checked).toBe('docs are up to date\n')
  })

  it('name the same hash tags', () => {
    const inSource = new Set(sources.flatMap(({ text }) => [...text.matchAll(/'(sion\/[a-z0-9-]+\/v[0-9]+)'/g)].map(([, tag = '']) => tag)))
    const inDocument = new Set([...readDocument('docs/protocol.md').matchAll(/`(sion\/[a-z0-9-]+\/v[0-9]+)`/g)].map(([, tag = '']) => tag))
    expect(inSource.size).toBeGreaterThan(0)
    expect([...inDocument].sort()).toEqual([...inSource].sort())
  })

  it('name the same reasons for which a client does not pay', () => {
    const { text } = sources.find(({ path }) => path === 'src/fetch/errors.ts') ?? { text: '' }
    const codes = [...text.matchAll(/\| '([a-z_]+)'/g)].map(([, code = '']) => code)
    const table = readDocument('docs/x402.md').split('| `PaymentError` code |')[1]?.split('\n\n')[0] ?? ''
    const shown = table.split('\n').flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`([a-z_]+)`/g)].map(([, code = '']) => code))
    expect(shown.sort()).toEqual(codes.sort())
  })

  it('name the same variables', () => {
    const inSource = new Set(sources.flatMap(({ text }) => text.match(/SION_[A-Z][A-Z_]*/g) ?? []))
    for (const name of inSource) expect(readDocument('docs/cli.md'), name).toContain(`| \`${name}\` |`)
  })

  it('name the same entry points', () => {
    const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { exports: Record<string, unknown> }
    const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')
    const named = new Set(readDocument('README.md').match(/(?<=`)sion-x402(\/[a-z0-9/-]+)?(?=`)/g))
    expect([...named].sort()).toEqual(entries.map((entry) => `sion-x402${entry.slice(1)}`).sort())
  })

  it('agree on where the documents say what a comment refers to', () => {
    for (const { path, text } of sources) {
      const prose = text.replaceAll(/\n\s*(\*|\/\/) ?/g, ' ')
      for (const [, document = '', section, heading] of prose.matchAll(/docs\/([a-z0-9-]+\.md)(?: §([0-9]+)|, "([^"]+)")?/g)) {
        expect(existsSync(`${root}docs/${document}`), `${path} refers to docs/${document}`).toBe(true)
        const headings = headingsOf(readDocument(`docs/${document}`))
        if (section !== undefined) expect(headings.some((one) => one.startsWith(`${section}. `)), `${path}: §${section}`).toBe(true)
        if (heading !== undefined) expect(headings.map((one) => one.replace(/^[0-9]+\. /, '')), path).toContain(heading)
      }
    }
  })
})

describe.each(documents)('%s', (path) => {
  it('links to what there is', () => {
    const folder = path.includes('/') ? 'docs/' : ''
    for (const [, target = ''] of readDocument(path).matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      if (!/^https?:/.test(target)) expect(existsSync(root + folder + target), target).toBe(true)
    }
  })
})
