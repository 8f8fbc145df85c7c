import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openNameBook } from '../../src/sdk/node.js'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'sion-names-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

const bob = 'b0'.repeat(32)
const carol = 'ca'.repeat(32)

describe('the name book', () => {
  it('calls an account by the name it was resolved under, also in the next command', async () => {
    const book = await openNameBook(home)
    expect(book.names(bob)).toBe('b0b0b0b0')
    await book.remember('bob', bob)
    expect(book.names(bob)).toBe('bob')
    expect((await openNameBook(home)).names(bob)).toBe('bob')
    expect(await readdir(home)).toEqual(['names.json'])
  })

  it('gives a name to one account only: the last that had it', async () => {
    const book = await openNameBook(home)
    await book.remember('bob', bob)
    await book.remember('bob', carol)
    expect(book.names(carol)).toBe('bob')
    expect(book.names(bob)).toBe('b0b0b0b0')
  })

  it('keeps what another command wrote meanwhile', async () => {
    const [one, two] = [await openNameBook(home), await openNameBook(home)]
    await one.remember('bob', bob)
    await two.remember('carol', carol)
    const after = await openNameBook(home)
    expect([after.names(bob), after.names(carol)]).toEqual(['bob', 'carol'])
  })

  it('is whole after many wrote at once', async () => {
    await Promise.all(Array.from({ length: 20 }, async (_, i) => (await openNameBook(home)).remember(`n${i}`, bob)))
    expect(JSON.parse(await readFile(join(home, 'names.json'), 'utf8'))).toMatchObject({ version: 1 })
    expect(await readdir(home)).toEqual(['names.json'])
  })

  it.each(['', '{', 'null', '[]', '{"version":2,"names":[]}', '{"version":1,"names":7}', '\u0000'])('starts anew over %j', async (contents) => {
    await writeFile(join(home, 'names.json'), contents)
    const book = await openNameBook(home)
    await book.remember('bob', bob)
    expect((await openNameBook(home)).names(bob)).toBe('bob')
  })

  it('passes over entries that are no name and id, which a terminal would otherwise be shown', async () => {
    const names = [['\u001b[2Jbob', bob], ['../x', bob], ['carol', 'CA'], [7, bob], 'x', ['dana', carol]]
    await writeFile(join(home, 'names.json'), JSON.stringify({ version: 1, names }))
    const book = await openNameBook(home)
    expect([book.names(bob), book.names(carol)]).toEqual(['b0b0b0b0', 'dana'])
  })

  it('works on, without a file, where it may not write', async () => {
    await writeFile(join(home, 'a-file'), '')
    const book = await openNameBook(join(home, 'a-file', 'home'))
    await book.remember('bob', bob)
    expect(book.names(bob)).toBe('bob')
  })
})
