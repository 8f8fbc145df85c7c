import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { fromHex } from '../../src/codec/index.js'
import { devnetWallet, openWalletStore, parseNameOrId, parseWalletName, resolveAccount, resolveWallet, sionHome, walletFromSeed } from '../../src/sdk/node.js'

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'sion-wallets-'))
})
afterEach(() => rm(home, { recursive: true, force: true }))

const posix = process.platform !== 'win32'
const seedText = '0123456789abcdef'.repeat(4)

async function put(name: string, contents: string, mode = 0o600): Promise<string> {
  const path = join(home, 'wallets', name)
  await mkdir(join(home, 'wallets'), { recursive: true, mode: 0o700 })
  await writeFile(path, contents, { mode })
  await chmod(path, mode)
  return path
}

describe('a new wallet', () => {
  it('is a file of 64 hex digits and a newline that only its owner can read, in a folder of the same kind', async () => {
    const store = openWalletStore(home)
    const wallet = await store.create('dana')
    const path = join(home, 'wallets', 'dana')
    const contents = await readFile(path, 'utf8')
    expect(contents).toMatch(/^[0-9a-f]{64}\n$/)
    expect(walletFromSeed(fromHex(contents.trim(), 'seed')).account).toBe(wallet.account)
    if (posix) {
      expect((await stat(path)).mode & 0o777).toBe(0o600)
      expect((await stat(join(home, 'wallets'))).mode & 0o777).toBe(0o700)
    }
    expect(await readdir(join(home, 'wallets'))).toEqual(['dana'])
  })

  it('never replaces one that is there, and leaves nothing behind when it fails', async () => {
    const store = openWalletStore(home)
    await store.create('dana')
    const before = await readFile(store.pathOf('dana'), 'utf8')
    await expect(store.create('dana')).rejects.toMatchObject({ code: 'wallet_exists', message: expect.stringContaining(store.pathOf('dana')) })
    expect(await readFile(store.pathOf('dana'), 'utf8')).toBe(before)
    expect(await readdir(store.folder)).toEqual(['dana'])
  })

  it('is made once when many ask for the same name at once', async () => {
    const store = openWalletStore(home)
    const made = await Promise.allSettled(Array.from({ length: 8 }, () => store.create('dana')))
    const won = made.filter((result) => result.status === 'fulfilled')
    expect(won).toHaveLength(1)
    expect((await store.load('dana'))?.account).toBe(won[0]?.value.account)
    expect(await readdir(store.folder)).toEqual(['dana'])
  })

  it('says what stands in its way where its folder cannot be', async () => {
    await writeFile(join(home, 'wallets'), '')
    await expect(openWalletStore(home).create('dana')).rejects.toMatchObject({ code: 'wallet_unwritable' })
  })
})

describe('a wallet file', () => {
  it('is loaded with or without its newline', async () => {
    await put('a', `${seedText}\n`)
    await put('b', seedText)
    const store = openWalletStore(home)
    expect(await store.load('a')).toMatchObject({ name: 'a', account: (await store.load('b'))?.account })
  })

  it('is absent without an error', async () => {
    expect(await openWalletStore(home).load('nobody')).toBeUndefined()
    expect(await openWalletStore(home).list()).toEqual([])
  })

  it.runIf(posix).each([0o644, 0o640, 0o602, 0o660])('is refused with mode %o, with the command that mends it', async (mode) => {
    const path = await put('dana', `${seedText}\n`, mode)
    await expect(openWalletStore(home).load('dana')).rejects.toMatchObject({
      code: 'wallet_exposed',
      message: expect.stringContaining(`chmod 600 ${path}`),
    })
  })

  it.each([
    ['empty', ''],
    ['one digit short', `${seedText.slice(1)}\n`],
    ['one digit long', `${seedText}0\n`],
    ['upper case', `${seedText.toUpperCase()}\n`],
    ['a carriage return', `${seedText}\r`],
    ['two newlines', `${seedText.slice(1)}\n\n`],
    ['spaces', ` ${seedText}`],
    ['huge', 'f'.repeat(1_000_000)],
  ])('is refused when it is %s, and the error shows nothing of it', async (_, contents) => {
    await put('dana', contents)
    const error: unknown = await openWalletStore(home).load('dana').catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'wallet_malformed' })
    expect(String(error)).not.toMatch(/0123456789|789ABC|fffff/)
  })

  it('that is a folder is refused', async () => {
    await mkdir(join(home, 'wallets', 'dana'), { recursive: true })
    await expect(openWalletStore(home).load('dana')).rejects.toMatchObject({ code: 'wallet_malformed' })
  })

  it.runIf(posix)('may be a link, whose target counts', async () => {
    await put('dana', `${seedText}\n`, 0o644)
    await symlink(join(home, 'wallets', 'dana'), join(home, 'wallets', 'link'))
    await expect(openWalletStore(home).load('link')).rejects.toMatchObject({ code: 'wallet_exposed' })
  })

  it('is listed by name only, other files are not', async () => {
    await put('dana', 'x')
    await put('Bob', 'x')
    await put('.hidden', 'x')
    await put('with space', 'x')
    await put(seedText, 'x')
    expect(await openWalletStore(home).list()).toEqual(['Bob', 'dana'])
  })
})

describe('a wallet name', () => {
  it.each(['a', 'dana', 'robot-7', 'A.b_c-9', '0', 'x'.repeat(64), 'deadbeef'])('may be %j', (name) => {
    expect(parseWalletName(name, 'name')).toBe(name)
  })

  it.each([
    '', '.', '..', '.dana', '-dana', '_dana', '../dana', 'a/b', 'a\\b', 'a b', 'a\n', 'a\u0000', 'dänä', 'x'.repeat(65),
    'ab'.repeat(32), 'AB'.repeat(32), 'a'.repeat(63), undefined, null, 7, ['dana'],
  ])('may not be %j', async (name) => {
    expect(() => parseWalletName(name, 'from')).toThrow(expect.objectContaining({ code: 'invalid_input', field: 'from' }))
    if (typeof name !== 'string') return
    const store = openWalletStore(home)
    await expect(store.create(name)).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(store.load(name)).rejects.toMatchObject({ code: 'invalid_input' })
    expect(await readdir(home)).toEqual([])
  })

  it('is told from an account id', () => {
    expect(parseNameOrId('ab'.repeat(32), 'to')).toBe('ab'.repeat(32))
    expect(parseNameOrId('dana', 'to')).toBe('dana')
    // One digit lost: never the name of a wallet that anyone can derive.
    expect(() => parseNameOrId('ab'.repeat(32).slice(1), 'to')).toThrow('to:')
  })
})

describe('the wallet that a name means', () => {
  it('is its file where there is one, on a devnet too', async () => {
    const store = openWalletStore(home)
    const made = await store.create('dana')
    expect((await resolveWallet(store, 'dana', 'sion-devnet-1')).account).toBe(made.account)
    expect(made.account).not.toBe(devnetWallet('dana').account)
  })

  it('is never the devnet wallet in place of a broken file', async () => {
    await put('dana', 'broken')
    await expect(resolveWallet(openWalletStore(home), 'dana', 'sion-devnet-1')).rejects.toMatchObject({ code: 'wallet_malformed' })
  })

  it('is the wallet anyone can derive on a devnet, and nothing elsewhere', async () => {
    const store = openWalletStore(home)
    expect(await resolveWallet(store, 'dana', 'sion-devnet-1')).toMatchObject({ name: 'dana', account: devnetWallet('dana').account })
    for (const chain of ['sion-1', 'sion', '', 'not-sion-devnet', 'Sion-devnet']) {
      await expect(resolveWallet(store, 'dana', chain, { field: 'from' })).rejects.toMatchObject({
        code: 'unknown_wallet',
        field: 'from',
        message: expect.stringContaining('no wallet "dana"'),
      })
    }
  })

  it('names an account, which an id does too', async () => {
    const store = openWalletStore(home)
    const id = 'cd'.repeat(32)
    expect(await resolveAccount(store, id, 'sion-1')).toEqual({ account: id })
    expect(await resolveAccount(store, 'bob', 'sion-devnet-1')).toEqual({ account: devnetWallet('bob').account, name: 'bob' })
  })
})

describe('SION_HOME', () => {
  it('is taken where it is set, and is ~/.sion where it is not or empty', () => {
    expect(sionHome({ SION_HOME: home })).toBe(home)
    expect(sionHome({ SION_HOME: '' })).toMatch(/\.sion$/)
    expect(sionHome({})).toMatch(/\.sion$/)
  })
})
