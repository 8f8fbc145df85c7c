import type { Id } from '../codec/index.js'
import { receiptSentence, type Action } from '../ledger/index.js'
import { awaitOutcome, outcomeJson, transact, type Outcome, type OutcomeJson, type Submission, type TransactOptions, type Wallet } from '../sdk/index.js'
import { EXIT, ExitError } from './exit.js'
import { printJson, progress } from './output.js'
import type { Session } from './session.js'

/** Shows what is about to be signed, signs and submits it, waits, and prints what became of it. */
export async function signAndPrint(session: Session, wallet: Wallet, action: Action): Promise<void> {
  await actAndPrint(session, wallet, (hooks) => transact(session.ledger, wallet, action, hooks))
}

/**
 * The same for whatever builds a transaction: `act` passes the hooks on. With `--json`, `jsonOf` says what is printed.
 * @throws ExitError where it was refused, or its outcome is not known.
 */
export async function actAndPrint(
  session: Session,
  wallet: Wallet,
  act: (hooks: TransactOptions) => Promise<Outcome>,
  jsonOf: (shown: OutcomeJson, outcome: Outcome) => object = (shown) => shown,
): Promise<Outcome> {
  const interruptible = new Interruptible()
  try {
    const outcome = await act({
      names: session.names,
      onIntent: (sentence) => session.say(`${wallet.name ?? session.names(wallet.account)} signs: ${sentence}`),
      onSend: ({ digest }) => interruptible.sent(digest),
    })
    printOutcome(session, outcome, jsonOf)
    return outcome
  } finally {
    interruptible.end()
  }
}

/** Waits for a transaction that the node signed and submitted itself, and prints what became of it. */
export async function waitAndPrint(session: Session, submission: Submission): Promise<void> {
  if (submission.kind === 'refused') throw new ExitError(EXIT.refused, submission.code, `the node refused it: ${submission.reason}`)
  // Without a digest there is nothing to ask about but the balance.
  if (submission.kind === 'unknown') {
    throw new ExitError(EXIT.unknown, 'outcome_unknown', `not known what became of it (${submission.reason}); look at the balance`, {
      cause: submission.cause,
    })
  }
  const { digest } = submission
  const interruptible = new Interruptible()
  interruptible.sent(digest)
  try {
    printOutcome(session, await awaitOutcome(session.ledger.client, digest))
  } finally {
    interruptible.end()
  }
}

function printOutcome(session: Session, outcome: Outcome, jsonOf: (shown: OutcomeJson, outcome: Outcome) => object = (shown) => shown): void {
  if (outcome.kind === 'settled' || outcome.kind === 'failed') {
    const { receipt } = outcome.receipt
    session.say(`Pulse ${receipt.pulse}: ${receiptSentence(receipt, session.names)}`)
    session.say(`  digest ${receipt.digest}`)
  }
  if (session.json) printJson(jsonOf(outcomeJson(outcome, session.names), outcome))
  switch (outcome.kind) {
    case 'settled':
      return
    case 'failed':
      // The receipt has said why.
      process.exitCode = EXIT.refused
      return
    case 'refused':
      throw new ExitError(EXIT.refused, outcome.code, `the ledger refused it: ${outcome.reason}; nothing was charged`)
    case 'unknown': {
      const until = outcome.validUntil === undefined ? '' : `; it can execute until Pulse ${outcome.validUntil}`
      const message = `not known what became of it (${outcome.reason})${until}. ${askAgain(outcome.digest)}`
      throw new ExitError(EXIT.unknown, 'outcome_unknown', message, { cause: outcome.cause })
    }
  }
}

/** What to do instead of paying again. */
export function askAgain(digest: Id): string {
  return `Do not pay again before you have asked: sion receipt ${digest}`
}

/** Ctrl-C, or an impatient `timeout`, while the outcome is open: says what was sent, so that nobody pays twice. */
class Interruptible {
  #digest: Id | undefined
  readonly #stop = (signal: NodeJS.Signals): void => {
    if (this.#digest !== undefined) progress(`error: interrupted; it was submitted and may execute. ${askAgain(this.#digest)}`)
    process.exit(signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated)
  }

  constructor() {
    process.once('SIGINT', this.#stop).once('SIGTERM', this.#stop)
  }

  sent(digest: Id): void {
    this.#digest = digest
  }

  end(): void {
    process.off('SIGINT', this.#stop).off('SIGTERM', this.#stop)
  }
}

/** No receipt by now. That proves nothing, so it is not a no. */
export function noReceipt(digest: Id): ExitError {
  const message = `the node has no receipt of ${digest}: it has not executed yet, or never will. Wait for it with --wait SECONDS, or ask again`
  return new ExitError(EXIT.unknown, 'unknown_transaction', message)
}
