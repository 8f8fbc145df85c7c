import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Documents that are shipped, relative to the root. */
export const documents = ['README.md', ...readdirSync(`${root}docs`).filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)]

export function readDocument(path: string): string {
  return readFileSync(root + path, 'utf8')
}

/** A fenced code block: the first word after the fence is its language, the second says what the block is to a test. */
export interface Fence {
  readonly language: string
  readonly role: string
  readonly text: string
  /** Of the opening fence, from 1. */
  readonly line: number
}

export function fencesOf(markdown: string): Fence[] {
  const fences: Fence[] = []
  let open: { language: string; role: string; line: number; lines: string[] } | undefined
  for (const [index, line] of markdown.split('\n').entries()) {
    const mark = /^```(\S*) ?(\S*)/.exec(line)
    if (open === undefined && mark !== null) {
      open = { language: mark[1] ?? '', role: mark[2] ?? '', line: index + 1, lines: [] }
    } else if (open !== undefined && mark !== null) {
      fences.push({ language: open.language, role: open.role, line: open.line, text: open.lines.join('\n') })
      open = undefined
    } else {
      open?.lines.push(line)
    }
  }
  if (open !== undefined) throw new Error(`the fence of line ${open.line} is not closed`)
  return fences
}

/** Headings with their level, outside of fences. */
export function headingsOf(markdown: string): string[] {
  return [...markdown.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading.trim())
}
