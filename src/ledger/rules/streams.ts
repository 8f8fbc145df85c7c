import { formatUsd, MAX_AMOUNT, shortId, type Id } from '../../codec/index.js'
import { CHECKPOINT_EVERY, checkpointCount, checkpointEntry, createWalker } from '../../crypto/chain-step.js'
import { EMPTY_LOG_ROOT, leafHash, sameHash, verifyInclusion } from '../../merkle/index.js'
import type { CloseStream, OpenStream, SettleStreams, StreamClaim, TopUpStream } from '../actions.js'
import { streamId } from '../ids.js'
import type { LedgerObject, Stream } from '../objects.js'
import type { LedgerEvent } from '../receipt.js'
import type { Rule, StateView } from './rule.js'
import { accountAt } from './transfers.js'

/** The longest walk that the ledger makes for one claim. */
export const WALK_LIMIT = 4_096
/** Hashes that one transaction may cost the ledger, walks and paths together: what bounds a Pulse's time. */
export const SETTLE_HASH_LIMIT = 262_144
/** A stream's last Pulse lies at most this far ahead: about 30 days of the fastest Pulses. */
export const MAX_STREAM_PULSES = 10_000_000

export const openStream: Rule<OpenStream> = (state, action, { signer, digest, pulse }) => {
  const { payee, anchor, salt, checkpointRoot, length, stepValue, escrow, lastPulse } = action
  if (payee === signer) return invalid('a stream to oneself')
  if (length === 0) return invalid('a chain of no elements')
  if (stepValue === 0n) return invalid('steps of 0 USD')
  if (escrow === 0n) return invalid('an escrow of 0 USD')
  const problem = escrowProblem(escrow, length, stepValue) ?? endProblem(lastPulse, pulse)
  if (problem !== undefined) return invalid(problem)
  if (checkpointCount(length) === 0 && !sameHash(checkpointRoot, EMPTY_LOG_ROOT)) {
    return invalid('a checkpoint root for a chain without checkpoints')
  }
  const taken = takeFrom(state, signer, escrow, 'escrow')
  if ('failed' in taken) return taken
  if (accountAt(state, payee) === undefined) return invalid(`${shortId(payee)} is not an account`)
  const id = streamId(digest)
  const stream: Stream = {
    kind: 'stream',
    payer: signer,
    payee,
    anchor,
    salt,
    checkpointRoot,
    length,
    stepValue,
    escrow,
    settled: 0,
    settledElement: anchor,
    lastPulse,
    closed: false,
  }
  return {
    writes: new Map<Id, LedgerObject>([taken.write, [id, stream]]),
    events: [{ kind: 'StreamOpened', stream: id, payer: signer, payee, escrow, lastPulse }],
  }
}

export const topUpStream: Rule<TopUpStream> = (state, action, { signer, pulse }) => {
  const stream = state.get(action.stream)
  if (stream?.kind !== 'stream') return unknown(action.stream)
  if (stream.payer !== signer) return { failed: 'unauthorized: only the payer tops up a stream' }
  if (stream.closed) return closed()
  if (action.lastPulse < stream.lastPulse) {
    return invalid(`a stream's last Pulse can only grow: it is ${stream.lastPulse}, not ${action.lastPulse}`)
  }
  if (action.amount === 0n && action.lastPulse === stream.lastPulse) return invalid('a top-up of nothing')
  const escrow = stream.escrow + action.amount
  const problem =
    escrowProblem(escrow, stream.length, stream.stepValue) ??
    (action.lastPulse === stream.lastPulse ? undefined : endProblem(action.lastPulse, pulse))
  if (problem !== undefined) return invalid(problem)
  const taken = takeFrom(state, signer, action.amount, 'top-up')
  if ('failed' in taken) return taken
  const { lastPulse } = action
  return {
    writes: new Map<Id, LedgerObject>([taken.write, [action.stream, { ...stream, escrow, lastPulse }]]),
    events: [{ kind: 'StreamToppedUp', stream: action.stream, amount: action.amount, escrow, lastPulse }],
  }
}

/**
 * Each claim stands alone: one that proves nothing is refused in an event and the others are paid, since a batch of
 * several sellers' streams must not fail for one that another server has settled meanwhile.
 */
export const settleStreams: Rule<SettleStreams> = (state, { claims }) => {
  if (claims.length === 0) return invalid('a settlement of no streams')
  if (new Set(claims.map(({ stream }) => stream)).size < claims.length) {
    return invalid('a settlement that names a stream twice')
  }
  const writes = new Map<Id, LedgerObject>()
  const events: LedgerEvent[] = []
  let hashes = 0
  let firstRefusal: string | undefined

  for (const claim of claims) {
    const stream = state.get(claim.stream)
    const proof = stream?.kind === 'stream' ? planClaim(claim, stream) : refused('unknown_stream', 'no such stream')
    if (!('code' in proof)) hashes += proof.hashes
    if (hashes > SETTLE_HASH_LIMIT) return invalid(`a settlement of more than ${SETTLE_HASH_LIMIT} hashes`)
    const problem = 'code' in proof ? proof : proof.check()
    if (problem !== undefined || stream?.kind !== 'stream') {
      const { code, reason } = problem ?? refused('unknown_stream', 'no such stream')
      firstRefusal ??= reason
      events.push({ kind: 'StreamClaimRefused', stream: claim.stream, code, reason })
      continue
    }
    const { payee } = stream
    const amount = BigInt(claim.position - stream.settled) * stream.stepValue
    const account = writes.get(payee) ?? accountAt(state, payee)
    if (account?.kind !== 'account' || account.balance + amount > MAX_AMOUNT) {
      firstRefusal ??= 'the payee would hold too much'
      events.push({ kind: 'StreamClaimRefused', stream: claim.stream, code: 'payee_full', reason: 'the payee would hold too much' })
      continue
    }
    writes.set(payee, { ...account, balance: account.balance + amount })
    writes.set(claim.stream, { ...stream, settled: claim.position, settledElement: claim.element })
    events.push({ kind: 'StreamSettled', stream: claim.stream, payee, position: claim.position, amount })
  }
  return writes.size === 0 ? { failed: `nothing to settle: ${firstRefusal ?? 'no claims'}` } : { writes, events }
}

export const closeStream: Rule<CloseStream> = (state, action, { signer, pulse }) => {
  const stream = state.get(action.stream)
  if (stream?.kind !== 'stream') return unknown(action.stream)
  const { payer, payee, lastPulse } = stream
  if (signer !== payee && signer !== payer) return { failed: 'unauthorized: only payer and payee close a stream' }
  if (stream.closed) return closed()
  if (signer === payer && pulse <= lastPulse) {
    return { failed: `unauthorized: the payer closes a stream after its last Pulse, ${lastPulse}` }
  }
  const refund = stream.escrow - BigInt(stream.settled) * stream.stepValue
  const account = accountAt(state, payer)
  if (account === undefined || account.balance + refund > MAX_AMOUNT) return invalid('the payer would hold too much')
  return {
    writes: new Map<Id, LedgerObject>([
      [payer, { ...account, balance: account.balance + refund }],
      [action.stream, { ...stream, closed: true }],
    ]),
    events: [{ kind: 'StreamClosed', stream: action.stream, payer, refund }],
  }
}

interface ClaimRefusal {
  readonly code: string
  readonly reason: string
}

/** What proving a claim costs in hashes, and the proving itself. */
interface ClaimPlan {
  readonly hashes: number
  check(): ClaimRefusal | undefined
}

/** Everything about a claim that costs no hash. Where it begins to cost, the limits have been checked. */
function planClaim({ position, element, jump }: StreamClaim, stream: Stream): ClaimPlan | ClaimRefusal {
  if (stream.closed) return refused('stream_closed', 'the stream is closed')
  if (position > stream.length) return refused('past_end', `position ${position} is past the end of the chain, ${stream.length}`)
  if (position <= stream.settled) {
    return refused('already_settled', `position ${position} is settled: the stream is at ${stream.settled}`)
  }
  if (BigInt(position) * stream.stepValue > stream.escrow) {
    return refused('insufficient_escrow', `position ${position} is more than the escrow of ${formatUsd(stream.escrow)} USD covers`)
  }
  const walker = createWalker(stream.salt)
  if (jump === undefined) {
    const steps = position - stream.settled
    if (steps > WALK_LIMIT) return refused('walk_too_long', `a walk of ${steps} steps; at most ${WALK_LIMIT}`)
    return {
      hashes: steps,
      check: () =>
        walker.reaches(element, position, stream.settledElement, stream.settled)
          ? undefined
          : refused('wrong_element', `the element does not walk down to position ${stream.settled}`),
    }
  }
  const checkpoints = checkpointCount(stream.length)
  const checkpoint = jump.index * CHECKPOINT_EVERY
  if (jump.index < 1 || jump.index > checkpoints) {
    return refused('jump_past_end', `checkpoint ${jump.index} of ${checkpoints}`)
  }
  if (position < checkpoint || position - checkpoint >= CHECKPOINT_EVERY) {
    return refused('jump_index', `checkpoint ${jump.index} is not the one below position ${position}`)
  }
  return {
    hashes: position - checkpoint + jump.path.length + 1,
    check: () => {
      const leaf = leafHash(checkpointEntry(jump.index, walker.down(element, position, checkpoint)))
      return verifyInclusion(stream.checkpointRoot, checkpoints, jump.index - 1, leaf, jump.path)
        ? undefined
        : refused('wrong_jump', `checkpoint ${jump.index} is not proven under the stream's root`)
    },
  }
}

/** Money that nobody could ever collect is a mistake of whoever puts it in. */
function escrowProblem(escrow: bigint, length: number, stepValue: bigint): string | undefined {
  if (escrow > MAX_AMOUNT) return `an escrow over ${formatUsd(MAX_AMOUNT)} USD`
  const most = BigInt(length) * stepValue
  return escrow > most ? `an escrow of ${formatUsd(escrow)} USD for a chain that pays ${formatUsd(most)} USD at most` : undefined
}

function endProblem(lastPulse: number, pulse: number): string | undefined {
  if (lastPulse <= pulse) return `a last Pulse of ${lastPulse}, which is not ahead of ${pulse}`
  return lastPulse > pulse + MAX_STREAM_PULSES ? `a last Pulse more than ${MAX_STREAM_PULSES} Pulses ahead` : undefined
}

function takeFrom(state: StateView, id: Id, amount: bigint, what: string): { write: [Id, LedgerObject] } | { failed: string } {
  const account = accountAt(state, id)
  if (account === undefined) return { failed: `unauthorized: ${shortId(id)} is not an account` }
  if (account.balance < amount) {
    return { failed: `insufficient balance: ${formatUsd(account.balance)} USD after the fee, below the ${what} ${formatUsd(amount)}` }
  }
  return { write: [id, { ...account, balance: account.balance - amount }] }
}

function invalid(problem: string): { failed: string } {
  return { failed: `invalid transaction: ${problem}` }
}

function unknown(stream: Id): { failed: string } {
  return { failed: `unknown stream ${shortId(stream)}` }
}

function closed(): { failed: string } {
  return { failed: 'the stream is closed' }
}

function refused(code: string, reason: string): ClaimRefusal {
  return { code, reason }
}
