import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNode, type DevnetNode } from '../../src/node/index.js'
import { Cli } from '../support/cli.js'

/** Claims and bonds as a person or a program uses them, against a real ledger. */

let node: DevnetNode
let cli: Cli
/** Rests on dana's dual signature. */
let signed: string
/** Rests on dana's bond of 5 USD. */
let bonded: string

beforeAll(async () => {
  node = await startNode({ listen: { host: '127.0.0.1', port: 0 }, validators: 1, idleTickMs: 2_000 })
  cli = await Cli.create({ SION_NODE: node.url, SION_CHAIN: node.chain })
  await cli.run('faucet', 'dana', '100')
  await cli.run('bond', 'deposit', 'dana', 'audit', '5')
  signed = await issue('Invoice 88 was paid in full', '--valid-for', '2000')
  bonded = await issue('The feed is complete', '--schema', 'feed/v1', '--bond', 'audit', '--detection', '500')
}, 120_000)
afterAll(async () => {
  await cli.remove()
  await node.stop()
})

async function issue(subject: string, ...flags: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli.run('claim', 'issue', 'dana', subject, ...flags)
  const id = /^claim ([0-9a-f]{64})$/m.exec(stdout)?.[1]
  if (code !== 0 || id === undefined) throw new Error(`not issued: ${stdout}${stderr}`)
  return id
}

const json = async (...args: string[]): Promise<Record<string, unknown>> => JSON.parse((await cli.run(...args, '--json')).stdout)

describe('sion claim', () => {
  it('issues: shows the intent, the receipt and the claim, and prints the JSON of the reference', async () => {
    const { code, stdout, stderr } = await cli.run('claim', 'issue', 'dana', 'Seen', '--valid-for', '10')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^dana signs: Claim “Seen” \(note\/v1\), resting on .+, until Pulse \d+\. Fee 0\.0011 USD; valid until Pulse \d+\.\nPulse \d+: Done: claim [0-9a-f]{8} submitted; fee 0\.0011 USD\.\n {2}digest [0-9a-f]{64}\nclaim [0-9a-f]{64}\n$/,
    )
    expect(await json('claim', 'issue', 'dana', 'Seen again')).toEqual({
      claim: expect.stringMatching(/^[0-9a-f]{64}$/),
      pulse: expect.any(Number),
      receipt: expect.stringMatching(/^Done: claim [0-9a-f]{8} submitted; fee 0\.0011 USD\.$/),
      status: 'Success',
      submitted: true,
    })
  })

  it('shows what a claim says, what it rests on and until when', async () => {
    expect(await json('claim', 'show', bonded)).toMatchObject({
      claim: bonded,
      subject: 'The feed is complete',
      schema: 'feed/v1',
      formula: 'bond:audit',
      detection_permille: 500,
      log_index: 1,
      status: 'Active',
    })
    const { stdout } = await cli.run('claim', 'show', signed)
    expect(stdout).toContain('“Invoice 88 was paid in full” (note/v1), by dana in Pulse ')
    expect(stdout).toContain('rests on all(ml-dsa-44, slh-dsa-sha2-128f)')
  })

  it('accepts two trusted signature families at any value, and rejects them distrusted with exit code 4', async () => {
    const good = await cli.run('claim', 'assess', signed, '--value', '1000')
    expect([good.code, good.stdout.split('\n').slice(0, 2)]).toEqual([
      0,
      ['accept: “Invoice 88 was paid in full” by dana, for 1000 USD', '  cost of corruption ∞ covers κ·V = 2,000'],
    ])
    const atoms = (await json('claim', 'assess', signed, '--value', '1000'))['atoms'] as { id: string }[]
    const distrust = atoms.flatMap(({ id }) => ['--distrust', id])
    const bad = await cli.run('claim', 'assess', signed, '--value', '1000', '--kappa', '3', ...distrust, '--json')
    expect(bad.code).toBe(4)
    expect(JSON.parse(bad.stdout)).toMatchObject({
      claim: 'Invoice 88 was paid in full',
      decision: {
        accept: false,
        adjudicator_cap: 'Infinite',
        coc: { exact: true, high: { Finite: 0 }, low: { Finite: 0 } },
        detection_adjusted: { Finite: 0 },
        effective: { Finite: 0 },
        reasons: [
          'cost of corruption 0 (after detection discount 1000/1000) is below κ·V = 3,000',
          'only 0 of backing is unreserved; κ·V = 3,000 is needed',
        ],
        required: 3_000_000_000,
        reservable: { Finite: 0 },
      },
      status: 'Active',
    })
  })

  it('takes a bond for what is in it, discounted by how likely a falsehood is found out', async () => {
    expect((await cli.run('claim', 'assess', bonded, '--value', '1.25')).code).toBe(0)
    const over = await cli.run('claim', 'assess', bonded, '--value', '1.250001')
    expect(over.code).toBe(4)
    expect(over.stdout).toContain('cost of corruption 2.5 (after detection discount 500/1000) is below κ·V = 2.500002')
    const [atom] = (await json('claim', 'assess', bonded, '--value', '1'))['atoms'] as { id: string }[]
    expect((await cli.run('claim', 'assess', bonded, '--value', '1.250001', '--attack-cost', `${atom?.id}=1`)).code).toBe(0)
  })

  it('lists the knowledge log, and tells a log that was rewritten from one that grew', async () => {
    const first = await json('claim', 'log', '--from', '0', '--limit', '2')
    expect(first).toMatchObject({ claims: [{ claim: signed }, { claim: bonded }] })
    await issue('One more')
    const { code, stdout } = await cli.run('claim', 'log')
    expect(code).toBe(0)
    expect(stdout).toContain(`  it begins with the ${Number(first['size'])} seen before ✓`)
    expect(stdout).toContain('dana: “One more” (note/v1)')
    const [file = ''] = await readdir(join(cli.home, 'knowledge'))
    const path = join(cli.home, 'knowledge', file)
    await writeFile(path, JSON.stringify({ version: 1, size: 2, root: 'e'.repeat(64) }))
    const forked = await cli.run('claim', 'log')
    expect([forked.code, forked.stdout]).toEqual([1, ''])
    expect(forked.stderr).toMatch(/is not shown to begin with the 2 that were seen before/)
    await writeFile(path, '{')
    expect((await cli.run('claim', 'log')).stderr).toMatch(/remove it to begin anew/)
  })

  it.each([
    [['claim', 'issue', 'dana', ''], 'SUBJECT'],
    [['claim', 'issue', 'dana', 'x', '--formula', 'all('], '--formula'],
    [['claim', 'issue', 'dana', 'x', '--bond', 'a', '--formula', 'dual'], '--formula'],
    [['claim', 'issue', 'dana', 'x', '--formula', 'bond:bob:audit'], 'formula'],
    [['claim', 'issue', 'dana', 'x', '--detection', '0'], '--detection'],
    [['claim', 'issue', 'dana', 'x', '--valid-for', '10000001'], '--valid-for'],
    [['claim', 'show', 'abc'], 'CLAIM'],
    [['claim', 'assess', 'e'.repeat(64), '--value', '0'], '--value'],
    [['claim', 'assess', 'e'.repeat(64), '--value', '1', '--kappa', '0'], '--kappa'],
    [['claim', 'assess', 'e'.repeat(64), '--value', '1', '--attack-cost', 'x'], '--attack-cost'],
    [['claim', 'log', '--limit', '501'], '--limit'],
    [['bond', 'deposit', 'dana', 'audit', '0'], 'AMOUNT'],
    [['bond', 'deposit', 'dana', 'x'.repeat(65), '1'], 'LABEL'],
  ])('refuses %j before anything is signed, naming %s', async (args, field) => {
    const { code, stdout, stderr } = await cli.run(...args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain(`error: ${field}`)
  })

  it('says of a claim that is none, and fails where a bond is empty, for the fee', async () => {
    const unknown = await cli.run('claim', 'show', 'e'.repeat(64))
    expect([unknown.code, unknown.stderr]).toEqual([1, expect.stringMatching(/^error: the ledger has no claim e{64} at Pulse \d+\n$/)])
    const { code, stdout } = await cli.run('claim', 'issue', 'dana', 'Unbacked', '--bond', 'nothing')
    expect(code).toBe(4)
    expect(stdout).toContain('Failed (invalid transaction: no money in the bond nothing); nothing happened except the fee of 0.0011 USD.')
  })
})

describe('sion bond', () => {
  it('is shown with what rests on it, held while a claim does, and given back in part where none does', async () => {
    expect(await json('bond', 'show', 'dana', 'audit')).toMatchObject({ amount: '5', reserved: '0', label: 'audit' })
    const held = await cli.run('bond', 'withdraw', 'dana', 'audit', '1')
    expect(held.code).toBe(4)
    expect(held.stdout).toMatch(/claims rest on the bond audit until Pulse \d+/)
    await cli.run('bond', 'deposit', 'dana', 'spare', '2')
    const taken = await cli.run('bond', 'withdraw', 'dana', 'spare', '0.5')
    expect([taken.code, taken.stdout]).toEqual([0, expect.stringContaining('0.5 USD taken back from the bond spare, which holds 1.5 USD')])
    const none = await cli.run('bond', 'show', 'dana', 'none')
    expect([none.code, none.stderr]).toEqual([1, expect.stringMatching(/^error: dana has no bond none at Pulse \d+\n$/)])
  })
})
