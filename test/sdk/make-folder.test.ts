import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { startNode } from '../../src/node/index.js'
import { openWalletStore } from '../../src/sdk/node.js'
import { makeFolder } from '../../src/sdk/make-folder.js'

const folder = mkdtempSync(join(tmpdir(), 'sion-folder-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('a folder', () => {
  it('is made with those above it, for its owner alone, and is left as it is where there is one', () => {
    const deep = join(folder, 'a', 'b', 'c')
    makeFolder(deep)
    makeFolder(deep)
    for (const made of [deep, join(folder, 'a')]) expect(statSync(made).mode & 0o777).toBe(0o700)
  })

  // Node's own recursive mkdir never comes back from here.
  it.runIf(process.platform === 'linux')('is refused at once in a file system that takes none: a wallet and a devnet say so', async () => {
    expect(() => makeFolder('/proc/sion/a')).toThrow('ENOENT')
    await expect(openWalletStore('/proc/sion').create('alice')).rejects.toMatchObject({ code: 'wallet_unwritable' })
    await expect(startNode({ listen: { host: '127.0.0.1', port: 0 }, dataFolder: '/proc/sion' })).rejects.toMatchObject({ code: 'data_folder_unusable' })
  })
})
