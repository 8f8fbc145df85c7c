import { Command } from 'commander'
import { messageOf } from '../codec/index.js'
import { EXIT } from './exit.js'
import { jsonOption, readNodeOptions, withNodeOptions } from './options.js'
import { print, printJson, progress } from './output.js'

/** `sion wallet …`: seed files under `$SION_HOME/wallets`. No command prints a seed. */
export function walletCommand(): Command {
  const wallet = new Command('wallet').description('Make, list and show wallets, and change how they sign')
  wallet
    .command('new')
    .description('Make a wallet: a fresh seed in $SION_HOME/wallets')
    .argument('<name>', 'Its name')
    .addOption(jsonOption())
    .action(makeWallet)
  wallet.command('list').description('List the wallets in $SION_HOME/wallets').addOption(jsonOption()).action(listWallets)
  wallet
    .command('show')
    .description('Show the account of a wallet')
    .argument('<name>', 'Its name')
    .addOption(jsonOption())
    .action(showWallet)
  withNodeOptions(
    wallet
      .command('dual')
      .description('Require both signatures, ML-DSA-44 and SLH-DSA-SHA2-128f, for every transaction of a wallet')
      .argument('<name>', 'The wallet')
      .option('--off', 'Require ML-DSA-44 alone again'),
  ).action(setDual)
  return wallet
}

async function makeWallet(name: string, options: { json?: boolean }): Promise<void> {
  const { openNameBook, openWalletStore, sionHome } = await import('../sdk/node.js')
  const store = openWalletStore(sionHome())
  const { account } = await store.create(name)
  await (await openNameBook(sionHome())).remember(name, account)
  const path = store.pathOf(name)
  if (options.json === true) return printJson({ account, name, path })
  print(`wallet ${name}: account ${account}`)
  print(`  seed in ${path}: whoever reads it can pay from this account, and nothing else can replace it`)
}

async function listWallets(options: { json?: boolean }): Promise<void> {
  const { openWalletStore, sionHome } = await import('../sdk/node.js')
  const store = openWalletStore(sionHome())
  const wallets: { account: string; name: string }[] = []
  for (const name of await store.list()) {
    try {
      const wallet = await store.load(name)
      if (wallet !== undefined) wallets.push({ account: wallet.account, name })
    } catch (error) {
      // One bad file must not hide the others.
      progress(`error: ${messageOf(error)}`)
      process.exitCode = EXIT.failed
    }
  }
  if (options.json === true) return printJson({ wallets })
  if (wallets.length === 0) progress(`no wallets in ${store.folder}; make one: sion wallet new NAME`)
  const width = Math.max(...wallets.map(({ name }) => name.length))
  for (const { account, name } of wallets) print(`${name.padEnd(width)}  ${account}`)
}

async function showWallet(name: string, options: { json?: boolean }): Promise<void> {
  const { devnetWallet, openWalletStore, sionHome } = await import('../sdk/node.js')
  const store = openWalletStore(sionHome())
  const stored = await store.load(name)
  const { account } = stored ?? devnetWallet(name)
  const path = stored === undefined ? null : store.pathOf(name)
  if (options.json === true) return printJson({ account, name, path, source: path === null ? 'devnet' : 'file' })
  print(`wallet ${name}: account ${account}`)
  print(path === null ? '  no file: on a devnet, and only there, anyone can derive this wallet from its name' : `  seed in ${path}`)
}

async function setDual(name: string, options: { off?: boolean }, command: Command): Promise<void> {
  const nodeOptions = readNodeOptions(command)
  const { parseWalletName } = await import('../sdk/node.js')
  parseWalletName(name, 'name')
  const { openSession } = await import('./session.js')
  const { signAndPrint } = await import('./transact.js')
  const session = await openSession(nodeOptions)
  const wallet = await session.wallet(name, 'name')
  await signAndPrint(session, wallet, { kind: 'setDual', dual: options.off !== true })
}
