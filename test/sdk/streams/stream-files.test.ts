import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SionError, toHex } from '../../../src/codec/index.js'
import { randomBytes } from '../../../src/crypto/runtime.js'
import { streamId } from '../../../src/ledger/index.js'
import type { StreamSecret } from '../../../src/sdk/index.js'
import { openStreamFiles, type StreamFiles } from '../../../src/sdk/node.js'
import { openPositionFile, readPosition } from '../../../src/sdk/streams/position-file.js'

let home: string
let files: StreamFiles
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'sion-streams-'))
  files = openStreamFiles(home)
})
afterEach(() => rm(home, { recursive: true, force: true }))

function secretOf(more: Partial<StreamSecret> = {}): StreamSecret {
  const digest = toHex(randomBytes(32))
  return {
    stream: streamId(digest),
    digest,
    validUntil: 40,
    chain: 'cc'.repeat(32),
    payer: 'aa'.repeat(32),
    wallet: 'alice',
    payee: 'bb'.repeat(32),
    seed: randomBytes(32),
    salt: randomBytes(16),
    length: 1_000,
    stepValue: 1_000n,
    escrow: 500_000n,
    lastPulse: 20_000,
    ...more,
  }
}

async function saved(more: Partial<StreamSecret> = {}): Promise<StreamSecret> {
  const secret = secretOf(more)
  await files.save(secret)
  return secret
}

async function errorOf(failing: Promise<unknown>): Promise<SionError> {
  const error: unknown = await failing.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof SionError) return error
  throw new Error(`no SionError: ${String(error)}`)
}

describe('a stream’s secret on disk', () => {
  it('comes back as it was, from a file and a folder that are its owner’s alone', async () => {
    const secret = await saved()
    expect(await files.load(secret.stream)).toEqual(secret)
    expect((await stat(files.pathOf(secret.stream))).mode & 0o777).toBe(0o600)
    expect((await stat(files.folder)).mode & 0o777).toBe(0o700)
    expect(await readdir(files.folder)).toEqual([`${secret.stream}.json`])
  })

  it('does without a wallet’s name', async () => {
    const { wallet: _, ...nameless } = secretOf()
    await files.save(nameless)
    expect(await files.load(nameless.stream)).toEqual(nameless)
  })

  it('that others may read is refused, with the command that mends it', async () => {
    const { stream } = await saved()
    await chmod(files.pathOf(stream), 0o640)
    const error = await errorOf(files.load(stream))
    expect([error.code, error.message]).toEqual(['stream_exposed', expect.stringContaining('chmod 600')])
  })

  it('of a newer format is refused by name', async () => {
    const { stream } = await saved()
    const text = await readFile(files.pathOf(stream), 'utf8')
    await writeFile(files.pathOf(stream), text.replace('"format": 1', '"format": 2'))
    const error = await errorOf(files.load(stream))
    expect([error.code, error.message]).toEqual(['stream_newer', expect.stringMatching(/has format 2, this version knows format 1: use the version of sion that wrote it$/)])
  })

  it('that is damaged is refused by the field, and never shown', async () => {
    const secret = await saved()
    const path = files.pathOf(secret.stream)
    const good = await readFile(path, 'utf8')
    const json: Record<string, unknown> = JSON.parse(good)
    const bad: string[] = ['', '{', '[]', 'null', good.slice(0, -30), good.replaceAll(secret.stream, 'ab'.repeat(32))]
    for (const field of Object.keys(json)) {
      if (field === 'wallet') continue
      for (const value of [undefined, null, -1, 1.5, 'zz', {}, '1'.repeat(99)]) bad.push(JSON.stringify({ ...json, [field]: value }))
    }
    for (const text of bad) {
      await writeFile(path, text)
      const error = await errorOf(files.load(secret.stream))
      expect(['stream_malformed', 'stream_newer']).toContain(error.code)
      expect(error.message).not.toContain(toHex(secret.seed).slice(0, 8))
    }
  })

  it('is found by the first digits of its id, if they are one stream’s', async () => {
    const { stream } = await saved()
    for (let i = 0; i < 3; i++) await saved()
    expect(await files.find(stream.slice(0, 12), 'ID')).toBe(stream)
    expect(await files.find(stream, 'ID')).toBe(stream)
    expect((await errorOf(files.find('abc', 'ID'))).message).toMatch(/^ID: expected a stream's id, or its first digits/)
    expect((await errorOf(files.find('../etc/passwd', 'ID'))).code).toBe('invalid_input')
    expect((await errorOf(files.find(`${stream.slice(0, 63)}`.replace(/.$/, 'x'), 'ID'))).code).toBe('invalid_input')
    expect((await errorOf(files.find('0'.repeat(64), 'ID'))).code).toBe('unknown_stream')
    const twin = `${stream.slice(0, 8)}${stream.slice(8).split('').reverse().join('')}`
    await writeFile(files.pathOf(twin), '{}', { mode: 0o600 })
    expect((await errorOf(files.find(stream.slice(0, 8), 'ID'))).message).toContain('begins the ids of 2 streams')
  })

  it('is listed whatever else lies in the folder, and is gone when forgotten', async () => {
    const [one, two] = [await saved(), await saved()]
    await files.remember(one.stream, { escrow: 600_000n, lastPulse: 1 })
    await files.setPosition(one.stream, { used: 1, revealed: 1 })
    await writeFile(join(files.folder, 'README'), '')
    expect(await files.list()).toEqual([one.stream, two.stream].toSorted())
    await files.forget(one.stream)
    await files.forget(one.stream)
    expect(await files.list()).toEqual([two.stream])
    expect((await readdir(files.folder)).toSorted()).toEqual([`${two.stream}.json`, 'README'].toSorted())
    expect((await errorOf(files.load(one.stream))).code).toBe('unknown_stream')
  })

  it('cannot be written where there is no place: nothing was sent', async () => {
    await writeFile(join(home, 'file'), '')
    const error = await errorOf(openStreamFiles(join(home, 'file')).save(secretOf()))
    expect([error.code, error.message]).toEqual(['stream_unwritable', expect.stringMatching(/nothing was sent$/)])
  })

  it('that is no file at all is refused without waiting for it', async () => {
    const { stream } = await saved()
    await rm(files.pathOf(stream))
    await symlink('/dev/zero', files.pathOf(stream))
    expect((await errorOf(files.load(stream))).code).toBe('stream_malformed')
  })

  it('takes what the ledger said last, unless it is less than what was opened', async () => {
    const secret = await saved()
    expect(await files.terms(secret)).toEqual({ escrow: 500_000n, lastPulse: 20_000 })
    await files.remember(secret.stream, { escrow: 700_000n, lastPulse: 30_000 })
    expect(await files.terms(secret)).toEqual({ escrow: 700_000n, lastPulse: 30_000 })
    await writeFile(join(files.folder, `${secret.stream}.terms.json`), 'torn')
    expect(await files.terms(secret)).toEqual({ escrow: 500_000n, lastPulse: 20_000 })
  })
})

describe('a position on disk', () => {
  const path = (): string => join(home, 'x.position')

  it('is there as soon as it is written, for whoever comes after a kill -9', async () => {
    const log = await openPositionFile(path(), { used: 0, revealed: 0 })
    for (let at = 1; at <= 300; at++) {
      await log.write({ used: at - 1, revealed: at })
      if (at % 50 === 0) expect(await readPosition(path())).toEqual({ used: at - 1, revealed: at })
    }
    await log.close()
    expect((await stat(path())).mode & 0o777).toBe(0o600)
    expect(await readPosition(path())).toEqual({ used: 299, revealed: 300 })
  })

  it('can go back', async () => {
    const log = await openPositionFile(path(), { used: 100, revealed: 100 })
    await log.write({ used: 6, revealed: 100 })
    await log.close()
    expect(await readPosition(path())).toEqual({ used: 6, revealed: 100 })
  })

  it('is nothing where there is no file', async () => {
    expect(await readPosition(path())).toEqual({ used: 0, revealed: 0 })
  })

  it('that is damaged or newer is refused, not taken for nothing', async () => {
    for (const [text, code] of [
      ['', 'position_unreadable'],
      ['1 0000000001', 'position_unreadable'],
      ['1 0000000009 0000000003\n', 'position_unreadable'],
      ['1 0000000009 9999999999\n', 'position_unreadable'],
      ['2 anything\n', 'position_newer'],
    ] as const) {
      await writeFile(path(), text)
      expect((await errorOf(readPosition(path()))).code).toBe(code)
    }
  })
})

/** A process that takes a stream and keeps it until its stdin ends. */
function holder(stream: string): { pid: number; taken: Promise<string>; kill(signal: NodeJS.Signals): Promise<void>; end(): Promise<void> } {
  const program = `
    import { openStreamFiles } from ${JSON.stringify(new URL('../../../dist/sdk/node.js', import.meta.url).href)}
    try {
      const payer = await openStreamFiles(${JSON.stringify(home)}).openPayer(${JSON.stringify(stream)})
      console.log('taken')
      for await (const _ of process.stdin);
      await payer.close()
    } catch (error) {
      console.log(error.code + ' ' + error.message)
    }`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  return {
    pid: child.pid ?? 0,
    taken: once(child.stdout, 'data').then(([text]: unknown[]) => String(text).trim()),
    async kill(signal) {
      child.kill(signal)
      await exited
    },
    async end() {
      child.stdin.end()
      await exited
    },
  }
}

describe('a stream that two processes want', () => {
  it('is one’s alone; the other is told whose', async () => {
    const { stream } = await saved()
    const first = holder(stream)
    expect(await first.taken).toBe('taken')
    const error = await errorOf(files.openPayer(stream))
    expect([error.code, error.message]).toEqual(['stream_in_use', `stream ${stream.slice(0, 8)} is in use by process ${first.pid}: one payer at a time pays from a stream`])
    expect((await errorOf(files.setPosition(stream, { used: 1, revealed: 1 }))).code).toBe('stream_in_use')
    await first.end()
    await (await files.openPayer(stream)).close()
  })

  it('is free at once when its holder was killed', async () => {
    const { stream } = await saved()
    const first = holder(stream)
    await first.taken
    await first.kill('SIGKILL')
    await (await files.openPayer(stream)).close()
    expect((await readdir(files.folder)).filter((name) => name.includes('.lock.'))).toEqual([])
  })

  it('of many that come at once is never two’s', async () => {
    const { stream } = await saved()
    const many = Array.from({ length: 5 }, () => holder(stream))
    const said = await Promise.all(many.map(({ taken }) => taken))
    expect(said.filter((word) => word === 'taken').length).toBeLessThanOrEqual(1)
    expect(said.every((word) => word === 'taken' || word.startsWith('stream_in_use'))).toBe(true)
    await Promise.all(many.map((each) => each.end()))
  })

  it('is told apart from this process’s own second try', async () => {
    const { stream } = await saved()
    const payer = await files.openPayer(stream)
    expect((await errorOf(files.openPayer(stream))).message).toContain(`in use by this process (${process.pid})`)
    await payer.close()
  })

  it('is let go where it cannot be paid from', async () => {
    const { stream } = await saved()
    await writeFile(join(files.folder, `${stream}.position`), 'x')
    expect((await errorOf(files.openPayer(stream))).code).toBe('position_unreadable')
    await rm(join(files.folder, `${stream}.position`))
    await (await files.openPayer(stream)).close()
  })

  it('takes a process of the same id and another start for a dead one', async () => {
    const { stream } = await saved()
    await writeFile(join(files.folder, `${stream}.lock.${process.ppid}.0123456789abcdef.00000000`), '')
    await (await files.openPayer(stream)).close()
  })
})
