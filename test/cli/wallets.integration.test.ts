import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fromHex } from '../../src/codec/index.js'
import { devnetWallet, walletFromSeed } from '../../src/sdk/index.js'
import { Cli } from '../support/cli.js'

let cli: Cli
beforeEach(async () => {
  // Wallets need no node: there is none at this address.
  cli = await Cli.create({ SION_NODE: 'http://127.0.0.1:1' })
})
afterEach(() => cli.remove())

const fileOf = (name: string) => join(cli.home, 'wallets', name)

describe('sion wallet', () => {
  it('new makes a seed file that only its owner reads, and shows its account, never its seed', async () => {
    const { code, stdout, stderr } = await cli.run('wallet', 'new', 'dana')
    const seed = await readFile(fileOf('dana'), 'utf8')
    const { account } = walletFromSeed(fromHex(seed.trim(), 'seed'))
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(new RegExp(`^wallet dana: account ${account}\\n`))
    expect(stdout).toContain(fileOf('dana'))
    expect(stdout).not.toContain(seed.trim())
    if (process.platform !== 'win32') expect((await stat(fileOf('dana'))).mode & 0o777).toBe(0o600)
  })

  it('new never replaces a wallet', async () => {
    await cli.run('wallet', 'new', 'dana')
    const before = await readFile(fileOf('dana'), 'utf8')
    const { code, stderr } = await cli.run('wallet', 'new', 'dana')
    expect(code).toBe(1)
    expect(stderr).toBe(`error: wallet "dana" is already there: ${fileOf('dana')}\n`)
    expect(await readFile(fileOf('dana'), 'utf8')).toBe(before)
  })

  it('show and list know it afterwards, in both forms', async () => {
    const made = JSON.parse((await cli.run('wallet', 'new', 'dana', '--json')).stdout)
    expect(made).toEqual({ account: expect.stringMatching(/^[0-9a-f]{64}$/), name: 'dana', path: fileOf('dana') })
    const { account } = made
    await cli.run('wallet', 'new', 'b')
    expect((await cli.run('wallet', 'show', 'dana')).stdout).toBe(`wallet dana: account ${account}\n  seed in ${fileOf('dana')}\n`)
    expect(JSON.parse((await cli.run('wallet', 'show', 'dana', '--json')).stdout)).toEqual({ ...made, source: 'file' })
    expect((await cli.run('wallet', 'list')).stdout).toMatch(new RegExp(`^b {5}[0-9a-f]{64}\\ndana  ${account}\\n$`))
    expect(JSON.parse((await cli.run('wallet', 'list', '--json')).stdout)).toEqual({
      wallets: [{ account: expect.any(String), name: 'b' }, { account, name: 'dana' }],
    })
  })

  it('show says where a name is only a devnet wallet', async () => {
    const { code, stdout } = await cli.run('wallet', 'show', 'dana')
    expect(code).toBe(0)
    expect(stdout).toContain(devnetWallet('dana').account)
    expect(stdout).toContain('anyone can derive this wallet')
    expect(JSON.parse((await cli.run('wallet', 'show', 'dana', '--json')).stdout)).toMatchObject({ path: null, source: 'devnet' })
    expect(await readdir(cli.home)).toEqual([])
  })

  it('list of none says how to make one', async () => {
    expect(await cli.run('wallet', 'list')).toMatchObject({ code: 0, stdout: '', stderr: expect.stringContaining('sion wallet new') })
    expect(JSON.parse((await cli.run('wallet', 'list', '--json')).stdout)).toEqual({ wallets: [] })
  })

  it('list shows the good ones beside a bad one, and exits 1', async () => {
    await cli.run('wallet', 'new', 'good')
    await writeFile(fileOf('bad'), 'no seed, but perhaps a secret', { mode: 0o600 })
    const { code, stdout, stderr } = await cli.run('wallet', 'list')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^good {2}[0-9a-f]{64}\n$/)
    expect(stderr).toBe(`error: wallet "bad": ${fileOf('bad')} does not hold a seed of 64 lower-case hex digits and a newline\n`)
  })

  it.runIf(process.platform !== 'win32')('refuses a seed that others may read', async () => {
    await mkdir(join(cli.home, 'wallets'))
    await writeFile(fileOf('dana'), `${'07'.repeat(32)}\n`)
    await chmod(fileOf('dana'), 0o644)
    const { code, stdout, stderr } = await cli.run('wallet', 'show', 'dana')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain(`chmod 600 ${fileOf('dana')}`)
  })
})
