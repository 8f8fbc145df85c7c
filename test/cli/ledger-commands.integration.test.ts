import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { devnetWallet } from '../../src/sdk/index.js'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { Cli } from '../support/cli.js'
import { lyingProxy, type LyingProxy } from '../support/lying-proxy.js'

/** Every command against a real node, as a person or a program runs it. */

let node: DevnetNode
let cli: Cli
let pinned: Cli
let proxy: LyingProxy

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, idleTickMs: 1_000 })
  cli = await Cli.create({ SION_NODE: node.url })
  pinned = cli.with({ SION_CHAIN: node.chain })
  proxy = await lyingProxy(node.url)
  await pinned.run('faucet', 'dana', '1000')
})
afterAll(async () => {
  await proxy.stop()
  await cli.remove()
  await node.stop()
})
afterEach(() => {
  proxy.lie = () => undefined
})

const hex = expect.stringMatching(/^[0-9a-f]{64}$/)
const count = expect.any(Number)

/** Keys in the reference's order, at every level that it shows. */
function keysOf(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(keysOf)
  if (typeof json !== 'object' || json === null) return typeof json
  return Object.entries(json).map(([key, value]) => [key, keysOf(value)])
}

function signalled(): { happened: Promise<void>; now: () => void } {
  let now = (): void => {}
  const happened = new Promise<void>((resolve) => {
    now = resolve
  })
  return { happened, now: () => now() }
}

async function balanceOf(name: string): Promise<string> {
  const { stdout } = await pinned.run('balance', name, '--json')
  return JSON.parse(stdout).balances[0].amount
}

describe('sion faucet', () => {
  it('pays, and prints the verified receipt', async () => {
    const { code, stdout, stderr } = await pinned.run('faucet', 'erin', '2.5')
    expect(stdout).toMatch(/^Pulse \d+: Done: paid 2\.5 USD to erin; fee 0\.0011 USD\.\n {2}digest [0-9a-f]{64}\n$/)
    expect([code, stderr]).toEqual([0, ''])
    expect(await balanceOf('erin')).toBe('2.5')
  })

  it('takes an account id, and prints JSON like a payment’s', async () => {
    const id = devnetWallet('frank').account
    const { code, stdout } = await pinned.run('faucet', id, '1', '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({ digest: hex, fee: '0.0011', pulse: count, receipt: expect.stringMatching(/^Done: paid 1 USD to/), status: 'Success' })
  })

  it('over its limit is bad input', async () => {
    const { code, stderr } = await pinned.run('faucet', 'dana', '1000000.000001')
    expect(code).toBe(2)
    expect(stderr).toMatch(/^error: amount: the faucet gives at most 1000000 USD/)
  })
})

describe('sion pay', () => {
  it('shows the intent before it signs, and the receipt after: the reference’s lines', async () => {
    const { code, stdout, stderr } = await pinned.run('pay', 'dana', 'bob', '1.5')
    expect(stdout).toMatch(
      /^dana signs: Pay 1\.5 USD to bob\. Fee 0\.0011 USD; valid until Pulse \d+\.\nPulse \d+: Done: paid 1\.5 USD to bob; fee 0\.0011 USD\.\n {2}digest [0-9a-f]{64}\n$/,
    )
    expect([code, stderr]).toEqual([0, ''])
  })

  it('prints sion_pay’s JSON, and the lines for people beside it', async () => {
    const { code, stdout, stderr } = await pinned.run('pay', 'dana', 'bob', '0.000001', '--json')
    expect(code).toBe(0)
    const json = JSON.parse(stdout)
    expect(stdout).toBe(`${JSON.stringify(json, null, 2)}\n`)
    expect(Object.keys(json)).toEqual(['digest', 'fee', 'pulse', 'receipt', 'status'])
    expect(json).toEqual({ digest: hex, fee: '0.0011', pulse: count, receipt: 'Done: paid 0.000001 USD to bob; fee 0.0011 USD.', status: 'Success' })
    expect(stderr).toMatch(/^dana signs: Pay 0\.000001 USD to bob\./)
    expect(stderr).toContain('Done: paid')
  })

  it('pays an id, which it calls by the name it knows', async () => {
    await pinned.run('balance', 'grace')
    const { stdout } = await pinned.run('pay', 'dana', devnetWallet('grace').account, '1')
    expect(stdout).toContain('dana signs: Pay 1 USD to grace.')
    expect(await balanceOf('grace')).toBe('1')
  })

  it('calls an id by its first digits where it knows no name', async () => {
    const id = 'ab'.repeat(32)
    expect((await pinned.run('pay', 'dana', id, '1')).stdout).toContain('Pay 1 USD to abababab.')
  })

  it('says what it is for', async () => {
    const { stdout } = await pinned.run('pay', 'dana', 'bob', '1', '--purpose', 'invoice 88 ✓')
    expect(stdout).toContain('Pay 1 USD to bob for invoice 88 ✓.')
  })

  it('from a wallet file pays from that account, not from the devnet wallet of its name', async () => {
    const made = await pinned.run('wallet', 'new', 'heidi', '--json')
    const { account } = JSON.parse(made.stdout)
    expect(account).not.toBe(devnetWallet('heidi').account)
    await pinned.run('faucet', 'heidi', '3')
    const { code, stdout } = await pinned.run('pay', 'heidi', 'bob', '1')
    expect([code, stdout]).toEqual([0, expect.stringContaining('heidi signs: Pay 1 USD to bob.')])
    expect(await balanceOf('heidi')).toBe('1.9989')
  })

  it('that the ledger refuses costs nothing: exit 4, and the reason', async () => {
    const { code, stdout, stderr } = await pinned.run('pay', 'pauper', 'bob', '5')
    expect(code).toBe(4)
    expect(stderr).toMatch(/^error: the ledger refused it: insufficient balance: .*; nothing was charged\n$/)
    expect(stdout).toMatch(/^pauper signs: [^\n]*\n$/)
    const json = await pinned.run('pay', 'pauper', 'bob', '5', '--json')
    expect(json.code).toBe(4)
    expect(JSON.parse(json.stdout)).toEqual({ code: 'insufficient_balance', digest: hex, status: { Refused: expect.stringContaining('insufficient balance') } })
  })

  it('that fails costs its fee: exit 4, and the receipt says why', async () => {
    const { code, stdout } = await pinned.run('pay', 'dana', 'dana', '1')
    expect(code).toBe(4)
    expect(stdout).toMatch(/\nPulse \d+: Failed \(invalid transaction: a payment to oneself\); nothing happened except the fee of 0\.0011 USD\.\n/)
    const json = JSON.parse((await pinned.run('pay', 'dana', 'dana', '1', '--json')).stdout)
    expect(json.status).toEqual({ Failed: 'invalid transaction: a payment to oneself' })
  })

  it('says once, on stderr, that nobody pinned the chain', async () => {
    const { stderr } = await cli.run('pay', 'dana', 'bob', '0.01')
    expect(stderr).toBe(`chain not pinned: the node vouches for itself; pin it with --chain ${node.chain} or SION_CHAIN\n`)
  })

  it('on another chain than the pinned one signs nothing', async () => {
    const before = await balanceOf('dana')
    const { code, stdout, stderr } = await cli.run('pay', 'dana', 'bob', '1', '--chain', 'ab'.repeat(32))
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^error: the node’s genesis is that of chain [0-9a-f]{8}, not of the pinned abababab\n$/)
    expect(await balanceOf('dana')).toBe(before)
  })
})

describe('a payment whose fate is open', () => {
  const through = () => pinned.with({ SION_NODE: proxy.url })

  it('is unknown where the receipt does not verify: exit 5, and how to ask again', async () => {
    proxy.lie = ({ path }) => (path.startsWith('/v1/receipts/') ? { body: { receipt: 'AAAA' } } : undefined)
    const { code, stderr } = await through().run('pay', 'dana', 'bob', '1')
    expect(code).toBe(5)
    expect(stderr).toMatch(
      /^error: not known what became of it \(the node’s answer to .*\); it can execute until Pulse \d+\. Do not pay again before you have asked: sion receipt [0-9a-f]{64}\n$/,
    )
    // It was paid, as an honest node shows to whoever asks again.
    const digest = /sion receipt ([0-9a-f]{64})/.exec(stderr)?.[1] ?? ''
    expect((await pinned.run('receipt', digest, '--wait', '10')).stdout).toContain('Done: paid 1 USD to bob')
  })

  it('prints as JSON what a program needs to ask again', async () => {
    proxy.lie = ({ path }) => (path.startsWith('/v1/receipts/') ? { body: 7 } : undefined)
    const { code, stdout } = await through().run('pay', 'dana', 'bob', '1', '--json')
    expect(code).toBe(5)
    expect(JSON.parse(stdout)).toEqual({ digest: hex, reason: expect.any(String), status: 'Unknown', valid_until: count })
  })

  it('is one payment where the connection broke after it was handed in', async () => {
    const before = Number(await balanceOf('ivan'))
    proxy.lie = ({ method, path }) => (method === 'POST' && path === '/v1/transactions' ? { raw: (response) => response.destroy() } : undefined)
    const { code, stdout } = await through().run('pay', 'dana', 'ivan', '1')
    expect([code, stdout]).toEqual([0, expect.stringContaining('Done: paid 1 USD to ivan')])
    expect(Number(await balanceOf('ivan'))).toBe(before + 1)
  })

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const)('says what was sent when %s ends the wait', async (signal, expected) => {
    const sent = signalled()
    proxy.lie = ({ path }) => (path.startsWith('/v1/receipts/') ? { raw: () => sent.now() } : undefined)
    const running = through().start('pay', 'dana', 'bob', '1')
    await sent.happened
    running.kill(signal)
    const { code, stderr } = await running.result
    expect(code).toBe(expected)
    expect(stderr).toMatch(/^error: interrupted; it was submitted and may execute\. Do not pay again before you have asked: sion receipt [0-9a-f]{64}\n$/)
  })

  it('was never sent where Ctrl-C came first', async () => {
    const asked = signalled()
    proxy.lie = ({ path }) => (path.startsWith('/v1/objects/') ? { raw: () => asked.now() } : undefined)
    const running = through().start('pay', 'dana', 'bob', '1')
    await asked.happened
    running.kill('SIGINT')
    expect(await running.result).toMatchObject({ code: 130, stdout: '', stderr: '' })
  })
})

describe('sion balance', () => {
  it('is proven, by name and by id', async () => {
    const byName = await pinned.run('balance', 'judy')
    const { account } = devnetWallet('judy')
    expect(byName).toMatchObject({ code: 0, stderr: '' })
    expect(byName.stdout).toMatch(new RegExp(`^judy has 0 USD at Pulse \\d+\\n {2}account ${account}\\n$`))
    expect((await pinned.run('balance', account)).stdout).toContain('judy has 0 USD')
  })

  it('prints sion_balance’s JSON', async () => {
    const { stdout } = await pinned.run('balance', 'dana', '--json')
    const json = JSON.parse(stdout)
    expect(keysOf(json)).toEqual([
      ['account', 'string'],
      ['balances', [[['amount', 'string'], ['asset', 'string']]]],
      ['pulse', 'number'],
    ])
    expect(json).toMatchObject({ account: devnetWallet('dana').account, balances: [{ asset: 'USD' }] })
  })

  it('that the node makes up is not believed', async () => {
    const lied = devnetWallet('dana').account
    proxy.lie = ({ path, body }) =>
      path.startsWith('/v1/objects/') && typeof body === 'object' && body !== null && 'object' in body ? { body: { ...body, object: null } } : undefined
    const { code, stdout, stderr } = await pinned.run('balance', lied, '--node', proxy.url)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^error: the proof does not show/)
  })
})

describe('sion receipt', () => {
  it('is verified, with the stake that signed', async () => {
    const { digest } = JSON.parse((await pinned.run('pay', 'dana', 'bob', '1.5', '--json')).stdout)
    const { code, stdout, stderr } = await pinned.run('receipt', digest)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^Pulse \d+: Done: paid 1\.5 USD to bob; fee 0\.0011 USD\.\n {2}digest [0-9a-f]{64}\n {2}verified: (3|4)00000 of 400000 stake signed \(quorum 266667\), chain [0-9a-f]{64}\n$/)
    const json = JSON.parse((await pinned.run('receipt', digest, '--json')).stdout)
    expect(keysOf(json)).toEqual([
      ['certificate', [['quorum', 'number'], ['signed', 'number']]],
      ['chain', 'string'],
      ['chain_pinned', 'boolean'],
      ['digest', 'string'],
      ['events', [[['Transferred', [['asset', 'string'], ['outputs', [['string', 'number']]]]]]]],
      ['outcome', 'string'],
      ['pulse', 'number'],
      ['receipt', 'string'],
      ['verified', 'boolean'],
    ])
    expect(json).toMatchObject({
      certificate: { quorum: 266_667 },
      chain: node.chain,
      chain_pinned: true,
      digest,
      events: [{ Transferred: { outputs: [[devnetWallet('bob').account, 1_500_000]] } }],
      outcome: 'success',
      receipt: 'Done: paid 1.5 USD to bob; fee 0.0011 USD.',
      verified: true,
    })
    const unpinned = await cli.run('receipt', digest)
    expect(unpinned.stdout).toContain('(not pinned)')
    expect(JSON.parse((await cli.run('receipt', digest, '--json')).stdout)).toMatchObject({ chain_pinned: false, verified: true })
  })

  it('of a failed transaction was fetched all the same: exit 0', async () => {
    const { digest } = JSON.parse((await pinned.run('pay', 'dana', 'dana', '1', '--json')).stdout)
    const { code, stdout } = await pinned.run('receipt', digest, '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ events: [], outcome: { failed: 'invalid transaction: a payment to oneself' }, verified: true })
  })

  it('that is not there is no answer: exit 5', async () => {
    const { code, stderr } = await pinned.run('receipt', 'cd'.repeat(32))
    expect(code).toBe(5)
    expect(stderr).toMatch(/^error: the node has no receipt of (cd){32}: .*--wait SECONDS/)
  })

  it('can be waited for, for as long as was said', async () => {
    const began = performance.now()
    const { code } = await pinned.run('receipt', 'cd'.repeat(32), '--wait', '2')
    expect(code).toBe(5)
    expect(performance.now() - began).toBeGreaterThan(2_000)
  })

  it('of another transaction is refused', async () => {
    const one = JSON.parse((await pinned.run('pay', 'dana', 'bob', '1', '--json')).stdout)
    const other = JSON.parse((await pinned.run('pay', 'dana', 'bob', '2', '--json')).stdout)
    const response = await fetch(`${node.url}/v1/receipts/${other.digest}`)
    const body: unknown = await response.json()
    proxy.lie = ({ path }) => (path.startsWith('/v1/receipts/') ? { body } : undefined)
    const { code, stdout, stderr } = await pinned.run('receipt', one.digest, '--node', proxy.url)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^error: asked for the receipt of/)
  })
})

describe('sion status', () => {
  it('says what the node says', async () => {
    const { code, stdout } = await pinned.run('status')
    expect(code).toBe(0)
    expect(stdout).toContain(`chain ${node.chain} (sion-devnet-1)`)
    expect(stdout).toContain(`network sion:${node.chain.slice(0, 32)}`)
    expect(stdout).toContain('4 of 4 validators active')
  })

  it('prints sion_status’s JSON, field for field', async () => {
    const json = JSON.parse((await pinned.run('status', '--json')).stdout)
    expect(Object.keys(json)).toEqual([
      'active', 'active_validators', 'anchors', 'beacon', 'certified_pulse', 'chain', 'chain_id', 'claims', 'commitment', 'epoch',
      'epoch_end', 'executed', 'forced_overdue', 'forced_pending', 'genesis', 'insecure_signatures', 'objects', 'proven_pulse',
      'pulse', 'round', 'session', 'shards', 'validator', 'validators',
    ])
    expect(Object.keys(json.commitment)).toEqual(['config', 'knowledge_root', 'knowledge_size', 'pulse', 'state_root'])
    expect(json).toMatchObject({ active: true, active_validators: 4, chain: node.chain, chain_id: 'sion-devnet-1', insecure_signatures: false })
  })

  it('of another chain than its genesis is refused', async () => {
    proxy.lie = ({ path, body }) => (path === '/v1/status' ? { body: { ...Object(body), chain: 'ab'.repeat(32) } } : undefined)
    expect(await pinned.run('status', '--node', proxy.url)).toMatchObject({ code: 1, stdout: '' })
  })

  it('cannot write to the terminal what it likes', async () => {
    proxy.lie = ({ path, body }) => (path === '/v1/status' ? { body: { ...Object(body), chain_id: '\u001b[2Jhello' } } : undefined)
    const { stdout } = await pinned.run('status', '--node', proxy.url)
    expect(stdout).not.toContain('\u001b')
  })
})

describe('sion wallet dual', () => {
  it('asks for both signatures from then on, and for one again', async () => {
    await pinned.run('faucet', 'mallory', '5')
    const on = await pinned.run('wallet', 'dual', 'mallory')
    expect(on.code).toBe(0)
    expect(on.stdout).toMatch(/^mallory signs: Require both signatures, .*\. Fee 0\.001 USD; valid until Pulse \d+\.\nPulse \d+: Done: mallory now needs both signatures; fee 0\.001 USD\.\n/)
    expect((await pinned.run('pay', 'mallory', 'bob', '1')).code).toBe(0)
    const off = await pinned.run('wallet', 'dual', 'mallory', '--off', '--json')
    expect(JSON.parse(off.stdout)).toMatchObject({ receipt: 'Done: mallory now needs one signature; fee 0.001 USD.', status: 'Success' })
    expect((await pinned.run('pay', 'mallory', 'bob', '1')).code).toBe(0)
  })
})

describe('a chain that has halted', () => {
  it('is said to have, and takes nothing', async () => {
    node.stopValidator(0)
    node.stopValidator(1)
    try {
      expect((await pinned.run('status')).stdout).toContain('the chain has halted')
      const { code, stdout, stderr } = await pinned.run('pay', 'dana', 'bob', '1')
      expect(code).toBe(1)
      expect(stdout).toMatch(/^dana signs/)
      expect(stderr).toMatch(/^error: the chain is halted: too few validators run; it may be sent again\n$/)
    } finally {
      node.startValidator(0)
      node.startValidator(1)
    }
    expect((await pinned.run('pay', 'dana', 'bob', '1')).code).toBe(0)
  })
})
