import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { fileAttempts } from '../../src/fetch/attempt-files.js'
import { memoryAttempts, type Attempt, type AttemptLog } from '../../src/fetch/attempts.js'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sion-attempts-'))
  folders.push(folder)
  return folder
}

const call = 'ca11'.repeat(16)
const attempt = (transaction: string, more: Partial<Attempt> = {}): Attempt => ({
  url: 'http://127.0.0.1:1/x',
  header: 'aGVhZGVy',
  transaction: transaction.repeat(32),
  submitUntil: 1_000,
  goodUntil: 2_000,
  ...more,
})

const logs: [string, (now: () => number) => AttemptLog][] = [
  ['in memory', (now) => memoryAttempts(now)],
  ['in files', (now) => fileAttempts(join(newFolder(), 'not', 'there', 'yet'), now)],
]

describe.each(logs)('attempts %s', (_, open) => {
  it('are held by the call that made them, until it releases them', async () => {
    const log = open(() => 0)
    expect(await log.take(call)).toBeUndefined()
    await log.save(call, attempt('a1'))
    expect(await log.take(call)).toBeUndefined()
    await log.release(call, attempt('a1'))
    expect(await log.take('other'.repeat(8))).toBeUndefined()
    expect(await log.take(call)).toEqual(attempt('a1'))
    expect(await log.take(call)).toBeUndefined()
  })

  it('of equal calls are told apart, and each is taken once', async () => {
    const log = open(() => 0)
    for (const transaction of ['a1', 'b2']) {
      await log.save(call, attempt(transaction))
      await log.release(call, attempt(transaction))
    }
    const taken = [await log.take(call), await log.take(call), await log.take(call)]
    expect(taken.map((each) => each?.transaction.slice(0, 2)).sort()).toEqual(['a1', 'b2', undefined])
  })

  it('that were answered are gone, and releasing them brings nothing back', async () => {
    const log = open(() => 0)
    await log.save(call, attempt('a1'))
    await log.clear(call, attempt('a1'))
    await log.release(call, attempt('a1'))
    expect(await log.take(call)).toBeUndefined()
  })

  it('can change their form and stay one', async () => {
    const log = open(() => 0)
    await log.save(call, attempt('a1'))
    await log.save(call, attempt('a1', { header: 'cmVmZXJlbmNl', submit: 'AA==' }))
    await log.release(call, attempt('a1'))
    expect(await log.take(call)).toEqual(attempt('a1', { header: 'cmVmZXJlbmNl', submit: 'AA==' }))
    expect(await log.take(call)).toBeUndefined()
  })

  it('are forgotten when no seller takes them any more', async () => {
    let now = 1_999
    const log = open(() => now)
    await log.save(call, attempt('a1'))
    await log.release(call, attempt('a1'))
    expect(await log.take(call)).toBeDefined()
    await log.release(call, attempt('a1'))
    now = 2_000
    expect(await log.take(call)).toBeUndefined()
    now = 0
    expect(await log.take(call)).toBeUndefined()
  })
})

describe('attempts in files', () => {
  it('outlive the process that held them, and are taken by one of those that come after', async () => {
    const folder = newFolder()
    const script = `
      import { fileAttempts } from ${JSON.stringify(new URL('../../dist/fetch/attempt-files.js', import.meta.url).href)}
      const log = fileAttempts(${JSON.stringify(folder)}, () => 0)
      await log.save(${JSON.stringify(call)}, ${JSON.stringify(attempt('a1'))})
      console.log('saved')
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    const log = fileAttempts(folder, () => 0)
    expect(await log.take(call)).toBeUndefined()
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    const others = [log, fileAttempts(folder, () => 0), fileAttempts(folder, () => 0)]
    const taken = await Promise.all(others.map((each) => each.take(call)))
    expect(taken.filter((each) => each !== undefined)).toEqual([attempt('a1')])
  })

  it('are for their owner’s eyes only', async () => {
    const folder = join(newFolder(), 'attempts')
    await fileAttempts(folder).save(call, attempt('a1'))
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
  })

  it('that cannot be read stop the call, by name: there is a signed payment in there', async () => {
    const folder = newFolder()
    for (const text of ['', '{', 'null', '{"url":1}']) {
      writeFileSync(join(folder, `${call}.${'a1'.repeat(32)}.json`), text)
      await expect(fileAttempts(folder).take(call)).rejects.toMatchObject({ code: 'attempt_unreadable', message: expect.stringContaining(folder) as unknown })
      for (const name of readdirSync(folder)) rmSync(join(folder, name))
    }
  })
})
