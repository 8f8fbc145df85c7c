import { chmod, copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { devnetWallet } from '../../src/sdk/index.js'
import { Cli, type CliResult, type RunningCli } from '../support/cli.js'
import { lyingProxy, type LyingProxy } from '../support/lying-proxy.js'

/** The payer's side of streams as a person or a program runs it, against a real ledger and `sion x402 serve --streams`. */

let node: DevnetNode
let cli: Cli
let proxy: LyingProxy
let seller: { url: string; running: RunningCli }

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 2_000 })
  cli = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
  proxy = await lyingProxy(node.url)
  await Promise.all([cli.run('faucet', 'alice', '1000'), cli.run('faucet', 'bob', '10'), cli.run('faucet', 'carol', '10')])
  seller = await serve('bob')
}, 120_000)
afterAll(async () => {
  seller.running.kill('SIGTERM')
  await seller.running.result
  await proxy.stop()
  await cli.remove()
  await node.stop()
})
afterEach(() => {
  proxy.lie = () => undefined
})

async function serve(payee: string, ...flags: string[]): Promise<{ url: string; running: RunningCli }> {
  const running = cli.start('x402', 'serve', payee, '--streams', '--price', '0.001', '--path', '/v1/price', '--body', '{"gpu_hour_usd":1.95}', '--listen', '127.0.0.1:0', ...flags)
  const [, url = ''] = await running.until(/selling (http:\S+) at 0\.001 USD/)
  return { url, running }
}

const folder = (): string => join(cli.home, 'streams')
const entries = (): Promise<string[]> => readdir(folder()).catch(() => [])
const filesOf = async (id: string): Promise<string[]> => (await entries()).filter((name) => name.startsWith(id))

async function open(...more: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli.run('stream', 'open', 'alice', 'bob', '--step', '0.001', '--length', '1000', '--escrow', '0.5', ...more)
  const id = /^stream ([0-9a-f]{64})$/m.exec(stdout)?.[1]
  if (code !== 0 || id === undefined) throw new Error(`not opened: ${stdout}${stderr}`)
  return id
}

async function fetch(id: string, ...more: string[]): Promise<CliResult> {
  return cli.run('x402', 'fetch', seller.url, '--stream', id, ...more)
}

function positionsIn(...outputs: string[]): number[] {
  return outputs.flatMap((text) => [...text.matchAll(/paid from the stream: position (\d+),/g)].map(([, position]) => Number(position)))
}

async function shown(id: string): Promise<Record<string, unknown>> {
  return JSON.parse((await cli.run('stream', 'show', id, '--json')).stdout)
}

describe('sion stream open', () => {
  it('shows the intent, the receipt, and the stream, whose secret is its owner’s alone', async () => {
    const { code, stdout, stderr } = await cli.run('stream', 'open', 'alice', 'bob', '--step', '0.001', '--length', '100000', '--escrow', '5')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^alice signs: Open a stream to bob: 100,000 steps of 0\.001 USD, 5 USD in escrow until Pulse \d+\. Fee 0\.0012 USD; valid until Pulse \d+\.\nPulse \d+: Done: stream [0-9a-f]{8} opened; fee 0\.0012 USD\.\n {2}digest [0-9a-f]{64}\nstream [0-9a-f]{64}\n$/,
    )
    const id = stdout.slice(-65, -1)
    expect((await stat(folder())).mode & 0o777).toBe(0o700)
    expect((await stat(join(folder(), `${id}.json`))).mode & 0o777).toBe(0o600)
    const until = Number(/until Pulse (\d+)\. Fee/.exec(stdout)?.[1])
    const at = Number(/^Pulse (\d+):/m.exec(stdout)?.[1])
    expect(until - at).toBeGreaterThan(99_990)
    expect(until - at).toBeLessThan(100_000)
  })

  it('prints the payment’s JSON and the stream’s id', async () => {
    const { code, stdout, stderr } = await cli.run('stream', 'open', 'alice', 'bob', '--step', '0.5', '--escrow', '1', '--pulses', '77', '--json')
    expect(code).toBe(0)
    const json = JSON.parse(stdout)
    expect(Object.keys(json)).toEqual(['digest', 'fee', 'pulse', 'receipt', 'status', 'stream'])
    expect(json).toMatchObject({ fee: '0.0012', status: 'Success' })
    expect(stderr).toContain('alice signs: Open a stream to bob: 100,000 steps of 0.5 USD, 1 USD in escrow')
    expect(await shown(json.stream)).toMatchObject({ escrow: '1', step: '0.5', length: 100_000 })
  })

  it('keeps no secret of a stream that the ledger refused or failed', async () => {
    const before = await entries()
    const refused = await cli.run('stream', 'open', 'alice', 'bob', '--step', '1', '--escrow', '100000')
    expect(refused.code).toBe(4)
    const failed = await cli.run('stream', 'open', 'alice', 'alice', '--step', '1', '--escrow', '1')
    expect(failed.code).toBe(4)
    expect(await entries()).toEqual(before)
  })

  it('keeps the secret where the outcome is not known, and that pays once the stream shows up', async () => {
    proxy.lie = ({ path }) => (path.startsWith('/v1/receipts/') ? { body: {} } : undefined)
    const { code, stdout, stderr } = await cli.run('stream', 'open', 'alice', 'bob', '--step', '0.001', '--escrow', '1', '--node', proxy.url)
    expect(code).toBe(5)
    expect(stdout).not.toMatch(/^stream/m)
    const [, id = ''] = /what stream ([0-9a-f]{64}) is paid with is kept/.exec(stderr) ?? []
    expect(await filesOf(id)).toContain(`${id}.json`)
    expect(stderr).toMatch(/error: not known what became of it .* Do not pay again before you have asked: sion receipt [0-9a-f]{64}\n$/)
    await cli.run('receipt', /sion receipt ([0-9a-f]{64})/.exec(stderr)?.[1] ?? '', '--wait', '10')
    expect(await shown(id)).toMatchObject({ state: 'open' })
    expect((await fetch(id)).code).toBe(0)
  })

  it('has written the secret before the transaction leaves', async () => {
    const before = new Set(await entries())
    let running: RunningCli | undefined
    const there = await new Promise<string[]>((resolve) => {
      // The answer to the submission never comes: the command is killed while it waits.
      proxy.lie = ({ method }) => (method === 'POST' ? { raw: () => void entries().then(resolve) } : undefined)
      running = cli.start('stream', 'open', 'alice', 'bob', '--step', '0.001', '--escrow', '1', '--node', proxy.url)
    })
    running?.kill('SIGKILL')
    await running?.result
    expect(there.filter((name) => !before.has(name))).toEqual([expect.stringMatching(/^[0-9a-f]{64}\.json$/)])
  })

  for (const [flags, error] of [
    [['--escrow', '1'], /required option '--step <STEP>' not specified/],
    [['--step', '0.001'], /required option '--escrow <ESCROW>' not specified/],
    [['--step', '0', '--escrow', '1'], /^error: --step: expected more than 0 USD/],
    [['--step', '1e-3', '--escrow', '1'], /^error: --step: expected USD in decimal/],
    [['--step', '0.0000001', '--escrow', '1'], /^error: --step: .* at most 6/],
    [['--step', '2', '--escrow', '1'], /^error: escrow: 1 USD is less than one step of 2 USD/],
    [['--step', '0.001', '--escrow', '1.001', '--length', '1000'], /^error: escrow: 1\.001 USD is more than 1000 steps of 0\.001 USD can ever pay/],
    [['--step', '1', '--escrow', '1', '--length', '0'], /^error: --length: expected a whole number from 1/],
    [['--step', '1', '--escrow', '1', '--length', '1.5'], /^error: --length: expected a whole number/],
    [['--step', '1', '--escrow', '1', '--pulses', '0'], /^error: --pulses: expected a whole number from 1/],
  ] as const) {
    it(`refuses ${flags.join(' ')}: exit 2`, async () => {
      const { code, stdout, stderr } = await cli.run('stream', 'open', 'alice', 'bob', ...flags)
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(error)
    })
  }
})

describe('sion x402 fetch --stream', () => {
  it('prints the reference’s lines, and needs neither a wallet nor a node', async () => {
    const id = await open()
    const { account } = devnetWallet('bob')
    const network = `sion:${node.chain.slice(0, 32)}`
    const { code, stdout, stderr } = await cli.with({ SION_NODE: 'http://127.0.0.1:9', SION_CHAIN: '' }).run('x402', 'fetch', seller.url, '--stream', id, '--count', '3')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toBe(
      [
        `402 Payment Required: 0.001 USD to ${account} on ${network} (exact)`,
        `402 Payment Required: 0.001 USD to ${account} on ${network} (stream)`,
        'paid from the stream: position 1, checked by the server with one hash per step',
        '200 {"gpu_hour_usd":1.95}',
        'paid from the stream: position 2, checked by the server with one hash per step',
        '200 {"gpu_hour_usd":1.95}',
        'paid from the stream: position 3, checked by the server with one hash per step',
        '200 {"gpu_hour_usd":1.95}',
        '',
      ].join('\n'),
    )
    const again = await fetch(id.slice(0, 8), '--json')
    expect(JSON.parse(again.stdout)).toMatchObject({ paid: true, status: 200, settlement: { extensions: { sion: { position: 4, stream: id } } } })
  })

  it('pays in parallel where the seller offers a window', async () => {
    const windowed = await serve('carol', '--window', '32')
    try {
      const { stdout } = await cli.run('stream', 'open', 'alice', 'carol', '--step', '0.001', '--length', '1000', '--escrow', '0.5')
      const id = stdout.slice(-65, -1)
      const { code, stdout: fetched } = await cli.run('x402', 'fetch', windowed.url, '--stream', id, '--count', '100', '--parallel', '16')
      expect(code).toBe(0)
      expect(positionsIn(fetched).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i + 1))
      expect(fetched.match(/^402 /gm)).toHaveLength(2)
    } finally {
      windowed.running.kill('SIGTERM')
      await windowed.running.result
    }
  })

  it('says what is wrong before it pays: exit 2 for what is no stream, 3 for what cannot pay', async () => {
    const id = await open()
    expect(await cli.run('x402', 'fetch', seller.url)).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: --wallet: name the wallet that pays, such as --wallet dana, or a stream: --stream ID/) })
    expect(await fetch('zz')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: --stream: expected a stream's id/) })
    expect(await fetch('00000000')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: --stream: there is no stream "00000000" in/) })
    expect(await fetch(id, '--parallel', '0')).toMatchObject({ code: 2 })
    expect(await fetch(id, '--chain', 'ab'.repeat(32))).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: --stream: stream [0-9a-f]{8} is on chain/) })
    expect(await fetch(id, '--max', '0.0005')).toMatchObject({ code: 3, stderr: 'error: the server asks 0.001 USD, more than the 0.0005 USD this client may pay\n' })
    expect(await fetch(id, '--max', '0.002', '--count', '3')).toMatchObject({ code: 3, stderr: expect.stringMatching(/^error: the server asks 0\.001 USD; 0\.002 of the 0\.002 USD/) })
    const other = JSON.parse((await cli.run('stream', 'open', 'alice', 'carol', '--step', '0.001', '--escrow', '1', '--json')).stdout).stream
    expect(await fetch(other)).toMatchObject({ code: 3, stderr: expect.stringMatching(/^error: the server is paid at [0-9a-f]{64}, and stream [0-9a-f]{8} pays [0-9a-f]{64}\n$/) })
  })

  it('ends exactly where the escrow does, and goes on after a top-up', async () => {
    const id = await open('--escrow', '0.003')
    const ended = await fetch(id, '--count', '4')
    expect(positionsIn(ended.stdout)).toEqual([1, 2, 3])
    expect(ended).toMatchObject({ code: 3, stderr: expect.stringMatching(/^error: stream [0-9a-f]{8} would come to 0\.004 USD with this payment, and its escrow is 0\.003 USD; top it up: sion stream top-up [0-9a-f]{8} AMOUNT\n$/) })
    const topped = await cli.run('stream', 'top-up', id.slice(0, 10), '0.002')
    expect(topped.code).toBe(0)
    expect(topped.stdout).toMatch(/^alice signs: Top up stream [0-9a-f]{8} by 0\.002 USD, until Pulse \d+\. Fee 0\.0011 USD;/)
    expect(positionsIn((await fetch(id, '--count', '2')).stdout)).toEqual([4, 5])
    expect((await fetch(id)).code).toBe(3)
  })

  it('learns from the ledger of a top-up that this machine did not make', async () => {
    const id = await open('--escrow', '0.001')
    await fetch(id)
    const elsewhere = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
    try {
      expect((await elsewhere.run('stream', 'top-up', id, '0.001', '--wallet', 'alice')).code).toBe(0)
    } finally {
      await elsewhere.remove()
    }
    expect(positionsIn((await fetch(id)).stdout)).toEqual([2])
  })

  it('is one process’s at a time', async () => {
    const id = await open()
    const slow = cli.start('x402', 'fetch', seller.url, '--stream', id, '--count', '300')
    await slow.until(/position 3,/)
    const second = await fetch(id)
    expect(second).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^error: stream [0-9a-f]{8} is in use by process \d+: one payer at a time pays from a stream\n$/) })
    expect((await slow.result).code).toBe(0)
    expect(positionsIn((await fetch(id)).stdout)).toEqual([301])
  })

  it('killed in the middle, again and again, goes on: no position is bought twice, and none is lost but the one on its way', async () => {
    const id = await open('--escrow', '1')
    const outputs: string[] = []
    let reached = 0
    for (let run = 1; run <= 6; run++) {
      const running = cli.start('x402', 'fetch', seller.url, '--stream', id, '--count', '500')
      // Far enough that it is in the middle, wherever it began.
      await running.until(new RegExp(`position ${reached + 10 * run},`))
      running.kill('SIGKILL')
      outputs.push((await running.result).stdout)
      reached = positionsIn(...outputs).at(-1) ?? 0
    }
    const last = await fetch(id, '--count', '5')
    expect([last.code, last.stderr]).toEqual([0, ''])
    const positions = positionsIn(...outputs, last.stdout)
    expect(new Set(positions).size).toBe(positions.length)
    expect(positions).toEqual(positions.toSorted((a, b) => a - b))
    // At most the call that was on its way, and one that was answered and not printed, for each kill.
    expect(positions.at(-1)! - positions.length).toBeLessThanOrEqual(2 * 6)
  })

  it('with the position of before a power cut finds its way, and with none at all too', async () => {
    const id = await open('--escrow', '1')
    const path = join(folder(), `${id}.position`)
    await fetch(id, '--count', '5')
    await copyFile(path, `${path}.old`)
    await fetch(id, '--count', '60')
    await copyFile(`${path}.old`, path)
    const after = await fetch(id, '--count', '2')
    expect([after.code, positionsIn(after.stdout)]).toEqual([0, [66, 67]])
  })

  it('that lost its position far back is told by the ledger what was settled', async () => {
    const id = await open('--escrow', '1')
    await fetch(id, '--count', '200')
    await writeFile(join(folder(), `${id}.position`), '1 0000000000 0000000000\n', { mode: 0o600 })
    const lost = await fetch(id)
    expect(lost.code).toBe(3)
    expect(lost.stderr).toMatch(/^error: the seller says that 200 steps of stream [0-9a-f]{8} are used, and this payer has used 0 and can have revealed 65 at most; .* sion stream recover [0-9a-f]{8} --position 200\n$/)
    // The seller settles; then the ledger's word is enough, and nobody has to be believed.
    expect((await cli.run('desk', 'settle', 'carol')).code).toBe(0)
    const by = await cli.run('stream', 'recover', id, '--position', '200')
    expect(by).toMatchObject({ code: 0, stdout: `stream ${id.slice(0, 8)} goes on from position 201\n` })
    expect(positionsIn((await fetch(id)).stdout)).toEqual([201])
  })
})

describe('sion stream list and show', () => {
  it('say what the ledger has and what was paid from here', async () => {
    const id = await open()
    await fetch(id, '--count', '7')
    expect(await shown(id.slice(0, 8))).toEqual({
      stream: id,
      state: 'open',
      payer: devnetWallet('alice').account,
      payee: devnetWallet('bob').account,
      step: '0.001',
      length: 1_000,
      escrow: '0.5',
      settled: '0',
      settled_position: 0,
      remaining: '0.5',
      pulse: expect.any(Number),
      last_pulse: expect.any(Number),
      used_position: 7,
      revealed_position: 7,
      unsettled: '0.007',
    })
    const { stdout } = await cli.run('stream', 'show', id)
    expect(stdout).toMatch(
      new RegExp(
        `^stream ${id}\\n {2}alice pays bob 0\\.001 USD a step, 1000 steps at most\\n {2}open at Pulse \\d+, until Pulse \\d+ \\(\\d+ more\\)\\n {2}escrow 0\\.5 USD: 0 settled \\(position 0\\), 0\\.5 left\\n {2}paid from here up to position 7: 0\\.007 USD not settled yet\\n$`,
      ),
    )
    const list = await cli.run('stream', 'list')
    expect(list.code).toBe(0)
    expect(list.stdout).toContain(`${id}  open, to bob: position 7 of 1000, 0.007 of 0.5 USD paid\n`)
    const json = JSON.parse((await cli.run('stream', 'list', '--json')).stdout)
    const listed = json.streams.find(({ stream }: { stream: string }) => stream === id)
    // Asked for later: the ledger may have ticked in between, and nothing else may have changed.
    const { pulse, ...rest } = await shown(id)
    expect(listed).toEqual({ ...rest, pulse: expect.any(Number) })
    expect(pulse).toBeGreaterThanOrEqual(listed.pulse)
  })

  it('never print a secret', async () => {
    const id = await open()
    const secret = JSON.parse(await readFile(join(folder(), `${id}.json`), 'utf8'))
    const outputs = [await cli.run('stream', 'show', id), await cli.run('stream', 'show', id, '--json'), await cli.run('stream', 'list', '--json'), await fetch(id, '--json')]
    for (const { stdout, stderr } of outputs) expect(stdout + stderr).not.toContain(secret.seed)
  })

  it('show a stranger’s stream by its whole id', async () => {
    const id = await open()
    const stranger = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
    try {
      expect(JSON.parse((await stranger.run('stream', 'show', id, '--json')).stdout)).toMatchObject({ state: 'open', used_position: null, unsettled: null })
      expect(await stranger.run('stream', 'show', id.slice(0, 8))).toMatchObject({ code: 2 })
      expect(await stranger.run('stream', 'show', 'ab'.repeat(32))).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: the ledger has no stream/) })
      expect(await stranger.run('stream', 'list')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringMatching(/^no streams in/) })
    } finally {
      await stranger.remove()
    }
  })

  it('list what is here while the node is away, and one bad file hides no other', async () => {
    const [id, bad] = [await open(), await open()]
    await chmod(join(folder(), `${bad}.json`), 0o644)
    const away = await cli.run('stream', 'list', '--node', 'http://127.0.0.1:9')
    expect(away.code).toBe(1)
    expect(away.stdout).toContain(`${id}  unknown, to ${devnetWallet('bob').account.slice(0, 8)}: position 0 of 1000`)
    const listed = await cli.run('stream', 'list')
    expect(listed).toMatchObject({ code: 1, stderr: expect.stringContaining('chmod 600') })
    expect(listed.stdout).toContain(id)
    await chmod(join(folder(), `${bad}.json`), 0o600)
  })

  it('believe no node that makes up a stream', async () => {
    const id = await open()
    proxy.lie = ({ path, body }) => (path.startsWith('/v1/objects/') && typeof body === 'object' && body !== null ? { body: { ...body, object: null } } : undefined)
    expect(await cli.run('stream', 'show', id, '--node', proxy.url)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/^error: the proof does not show/) })
  })
})

describe('sion stream settle', () => {
  it('has the payee paid up to where this machine has paid, by jump where that is less work', async () => {
    const id = await open()
    await fetch(id, '--count', '70')
    const some = await cli.run('stream', 'settle', id, '30')
    expect(some.code).toBe(0)
    expect(some.stdout).toMatch(/^alice signs: Settle 1 stream, paying its payee\..*\nPulse \d+: Done: stream [0-9a-f]{8} settled up to position 30, 0\.03 USD paid to bob; fee/)
    const all = await cli.run('stream', 'settle', id.slice(0, 8), '--json')
    expect(JSON.parse(all.stdout)).toMatchObject({ position: 70, stream: id, status: 'Success' })
    expect(await shown(id)).toMatchObject({ settled_position: 70, unsettled: '0' })
    expect(await cli.run('stream', 'settle', id)).toMatchObject({ code: 3, stderr: expect.stringMatching(/^error: nothing to settle: stream [0-9a-f]{8} is settled up to position 70, and 70 is not beyond it/) })
    expect(await cli.run('stream', 'settle', id, '71')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: POSITION: expected a whole number from 1 to 70/) })
    // Recovering from here needs nobody's word but the ledger's.
    await writeFile(join(folder(), `${id}.position`), 'damaged', { mode: 0o600 })
    expect((await fetch(id)).code).toBe(1)
    expect(await cli.run('stream', 'recover', id)).toMatchObject({ code: 0, stdout: `stream ${id.slice(0, 8)} goes on from position 71\n` })
    expect(positionsIn((await fetch(id)).stdout)).toEqual([71])
  })
})

describe('sion stream close', () => {
  it('is the payee’s at any time; the payer’s machine then forgets the stream when it hears so', async () => {
    const id = await open()
    const early = await cli.run('stream', 'close', id)
    expect(early).toMatchObject({ code: 3, stderr: expect.stringMatching(/^error: alice pays stream [0-9a-f]{8} and can close it after its last Pulse, \d+; it is Pulse \d+\. bob can close it now\n$/) })
    const closed = await cli.run('stream', 'close', id, '--wallet', 'bob')
    expect(closed.code).toBe(0)
    expect(closed.stdout).toMatch(/^bob signs: Close stream [0-9a-f]{8}, what is not settled going back to its payer\. .*\nPulse \d+: Done: stream [0-9a-f]{8} closed, 0\.5 USD back to alice; fee/)
    expect(await filesOf(id)).toEqual([])
    expect(await shown(id)).toMatchObject({ state: 'closed' })
    expect((await fetch(id)).code).toBe(2)
  })

  it('by another machine is noticed when it is asked for again', async () => {
    const id = await open()
    const elsewhere = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
    try {
      expect((await elsewhere.run('stream', 'close', id, '--wallet', 'bob')).code).toBe(0)
    } finally {
      await elsewhere.remove()
    }
    expect((await cli.run('stream', 'list')).stdout).toContain(`${id}  closed, to bob`)
    const paid = await fetch(id)
    expect([paid.code, paid.stdout]).toEqual([4, expect.stringContaining('payment refused: the stream is closed')])
    expect(await cli.run('stream', 'close', id)).toMatchObject({ code: 3, stderr: expect.stringMatching(/is closed already: 0\.5 USD went back to alice/) })
    expect(await filesOf(id)).toEqual([])
  })

  it('is the payer’s after the last Pulse, and gives back what is not settled', async () => {
    const id = await open('--pulses', '4')
    const lastPulse = Number((await shown(id))['last_pulse'])
    while (Number((await shown(id))['pulse']) < lastPulse) await new Promise((resolve) => setTimeout(resolve, 100))
    const closed = await cli.run('stream', 'close', id)
    expect(closed.stdout).toMatch(/stream [0-9a-f]{8} closed, 0\.5 USD back to alice/)
    expect(closed.code).toBe(0)
    expect(await filesOf(id)).toEqual([])
  })

  it('is nobody else’s', async () => {
    const id = await open()
    expect((await cli.run('stream', 'close', id, '--wallet', 'carol')).code).toBe(4)
    expect((await filesOf(id)).length).toBeGreaterThan(0)
  })
})

describe('sion stream top-up', () => {
  it('adds time alone, and never takes any', async () => {
    const id = await open('--pulses', '500')
    const before = Number((await shown(id))['last_pulse'])
    expect((await cli.run('stream', 'top-up', id, '0', '--pulses', '2000')).code).toBe(0)
    const after = Number((await shown(id))['last_pulse'])
    expect(after).toBeGreaterThan(before + 1_000)
    expect((await cli.run('stream', 'top-up', id, '0.1', '--pulses', '10')).code).toBe(0)
    expect(await shown(id)).toMatchObject({ last_pulse: after, escrow: '0.6' })
  })

  it('of nothing, or more than the chain can pay, is refused', async () => {
    const id = await open()
    expect(await cli.run('stream', 'top-up', id, '0')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: AMOUNT: expected more than 0 USD, or --pulses/) })
    expect((await cli.run('stream', 'top-up', id, '0.6')).code).toBe(4)
    expect((await cli.run('stream', 'top-up', 'ab'.repeat(32), '1', '--wallet', 'alice')).code).toBe(1)
    expect(await cli.run('stream', 'top-up', 'ab'.repeat(32), '1')).toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: --wallet: name the wallet that signs/) })
  })
})
