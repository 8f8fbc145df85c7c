import { describe, expect, it } from 'vitest'
import { readFileSync } from 'node:fs'
import { documents, fencesOf, readDocument, root } from './markdown.js'
import { commandsOf, Session } from './session.js'
import { jsonKinds } from './json-kinds.js'

/** A console block that the README's reader runs in the checkout itself: see the test below. */
const CHECKOUT = 'checkout'

describe.each(documents)('%s', (path) => {
  const fences = fencesOf(readDocument(path))

  it('has no block but those that a test knows what to do with', () => {
    for (const { language, role, line } of fences) {
      const known =
        (language === 'console' && ['', 'background', CHECKOUT].includes(role)) ||
        (language === 'js' && /^[a-z-]+\.mjs$/.test(role)) ||
        (language === 'json' && Object.hasOwn(jsonKinds, role)) ||
        (language === 'text' && role === '')
      expect(known, `line ${line}: \`\`\`${language} ${role}`).toBe(true)
    }
  })

  it('shows JSON that our own parsers read', () => {
    for (const { language, role, line, text } of fences) {
      if (language !== 'json') continue
      expect(() => jsonKinds[role]?.(JSON.parse(text)), `line ${line}`).not.toThrow()
    }
  })

  it('can be followed from top to bottom', async () => {
    const session = await Session.open()
    try {
      for (const fence of fences) {
        if (fence.language === 'console' && fence.role === CHECKOUT) continue
        await session.follow(fence).catch((error: unknown) => {
          throw new Error(`${path}, line ${fence.line}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
        })
      }
    } finally {
      await session.close()
    }
  }, 180_000)

  it('names only npm scripts that there are', () => {
    const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { scripts: Record<string, string> }
    const text = readDocument(path)
    const named = [...text.matchAll(/npm (?:run ([a-z:]+)|(test)\b)/g)].map(([, run, test]) => run ?? test ?? '')
    for (const name of named) expect(Object.keys(scripts)).toContain(name)
    for (const { role, text: block } of fences) {
      if (role !== CHECKOUT) continue
      for (const { line } of commandsOf(block)) expect(line).toMatch(/^(npm |cd |git clone )/)
    }
  })
})
