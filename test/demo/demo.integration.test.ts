import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sion-demo-test-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  readonly processGroup: number
}

/** Runs the demo in a process group, a home and a temporary folder of its own. */
async function runDemo(script: string, onOutput: (text: string, pid: number) => void = () => {}): Promise<Ran> {
  const child = spawn(process.execPath, [script], {
    detached: true,
    env: { PATH: process.env['PATH'], HOME: folder, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const processGroup = child.pid ?? 0
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    onOutput(stdout, processGroup)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr, processGroup }
}

async function expectNothingLeft({ processGroup }: Ran): Promise<void> {
  expect(() => process.kill(-processGroup, 0)).toThrow('ESRCH')
  expect(await readdir(folder)).toEqual([])
}

describe('npm run demo', () => {
  it('shows a quote, a verified purchase, a cap, a replay and the balances, and leaves nothing running or lying about', async () => {
    const started = performance.now()
    const ran = await runDemo(join(root, 'scripts', 'demo.mjs'))
    expect(ran.stderr).toBe('')
    expect(ran.code).toBe(0)
    expect(performance.now() - started).toBeLessThan(60_000)
    const lines = ran.stdout.split('\n').map((line) => line.trim())
    const inOrder = [
      /^✓ 402 Payment Required, and the handler has not run$/,
      /^price +0\.25 USD \(250000 micro-USD\), scheme exact$/,
      /^dana signs a transfer of 0\.25 USD/,
      /^✓ 200 \{"report":"sunny","served":1\} after [0-9.]+ s$/,
      /^transaction +[0-9a-f]{64}$/,
      /^outcome +Done: paid 0\.25 USD to carol; fee 0\.0011 USD\.$/,
      /^Pulse +[0-9]+, place 1 of 1/,
      /^certificate +(300000|400000) of 400000 stake signed \(quorum 266667\)/,
      /^✓ refused, and nothing signed: the server asks 0\.25 USD, more than the 0\.1 USD this client may pay$/,
      /^✓ 402 payment_used: /,
      /^before +0 USD, proven at Pulse [0-9]+$/,
      /^after +0\.25 USD, proven at Pulse [0-9]+$/,
    ]
    let at = 0
    for (const pattern of inOrder) {
      const found = lines.findIndex((line, i) => i >= at && pattern.test(line))
      expect(found, `${pattern} after line ${at} of:\n${ran.stdout}`).toBeGreaterThanOrEqual(0)
      at = found + 1
    }
    await expectNothingLeft(ran)
  })

  it('ends at SIGTERM in the middle, with nothing left', async () => {
    let sent = false
    const ran = await runDemo(join(root, 'scripts', 'demo.mjs'), (text, pid) => {
      if (sent || !text.includes('the ledger answers')) return
      sent = true
      process.kill(pid, 'SIGTERM')
    })
    expect(ran.code).toBe(143)
    expect(ran.stderr).toBe('')
    await expectNothingLeft(ran)
  })

  it('says in one line what to run where nothing is built', async () => {
    const elsewhere = join(folder, 'unbuilt')
    await mkdir(elsewhere)
    await cp(join(root, 'scripts'), join(elsewhere, 'scripts'), { recursive: true })
    const ran = await runDemo(join(elsewhere, 'scripts', 'demo.mjs'))
    expect(ran.code).toBe(1)
    expect(ran.stderr).toBe('error: nothing is built yet; run: npm ci\n')
  })
})
