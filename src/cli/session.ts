import type { Id } from '../codec/index.js'
import type { Signatures } from '../crypto/signatures.js'
import type { Names } from '../ledger/index.js'
import { createLightClient, httpTransport, type Trust } from '../light/index.js'
import { createNodeClient, type Ledger, type Wallet } from '../sdk/index.js'
import { openNameBook, openWalletStore, resolveAccount, resolveWallet, sionHome } from '../sdk/node.js'
import type { NodeOptions } from './options.js'
import { progress, speaker } from './output.js'

/** One command's view of a ledger and of this machine's wallets. */
export interface Session {
  readonly ledger: Ledger
  readonly trust: Trust
  readonly json: boolean
  /** How sentences call accounts: by the names that this machine has seen. */
  readonly names: Names
  /** Prints a line for people: the result, or, with `--json`, what goes beside it. */
  readonly say: (line: string) => void
  /** The wallet of a name. @throws InputError naming `field`. */
  wallet(name: string, field: string): Promise<Wallet>
  /** The account of a name or id. @throws InputError naming `field`. */
  account(nameOrId: string, field: string): Promise<Id>
}

/**
 * Reaches the node and learns what chain it is on. Says once where nobody pinned that. A server passes what verifies off
 * its event loop.
 */
export async function openSession(options: NodeOptions, signatures?: Signatures): Promise<Session> {
  const transport = httpTransport(options.node)
  const client = createLightClient({ transport, signatures, chain: options.chain })
  const trust = await client.trust()
  if (!trust.pinned) progress(`chain not pinned: the node vouches for itself; pin it with --chain ${trust.chain} or SION_CHAIN`)
  const home = sionHome()
  const store = openWalletStore(home)
  const book = await openNameBook(home)
  return {
    ledger: { client, node: createNodeClient(transport) },
    trust,
    json: options.json,
    names: (account) => book.names(account),
    say: speaker(options),
    async wallet(name, field) {
      const wallet = await resolveWallet(store, name, trust.genesis.name, { field })
      await book.remember(name, wallet.account)
      return wallet
    },
    async account(nameOrId, field) {
      const { account, name } = await resolveAccount(store, nameOrId, trust.genesis.name, { field })
      if (name !== undefined) await book.remember(name, account)
      return account
    },
  }
}
