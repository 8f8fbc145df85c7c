import type { Id } from '../codec/index.js'

/**
 * The node's HTTP API, version 1, as JSON (docs/protocol.md, "The node's API"). Bytes are base64 of canonical
 * encodings, ids are hex, USD is decimal text. These are claims of the node: the light client believes none of it before
 * it has checked it.
 */

/** `GET /v1/status`. The names are the reference's (sion_status). */
export interface StatusJson {
  active: boolean
  active_validators: number
  anchors: number
  beacon: Id
  certified_pulse: number
  chain: Id
  chain_id: string
  claims: number
  commitment: {
    config: Id
    knowledge_root: Id
    knowledge_size: number
    pulse: number
    state_root: Id
  }
  epoch: number
  epoch_end: number
  /** Transactions executed, by shard; one shard while the chain has no lanes. */
  executed: number[]
  forced_overdue: number
  forced_pending: number
  genesis: Id
  insecure_signatures: boolean
  objects: number
  proven_pulse: number
  pulse: number
  round: number
  session: number
  shards: number
  validator: Id
  validators: number
}

/** `GET /v1/genesis` */
export interface GenesisJson {
  chain: Id
  genesis: string
}

/** `GET /v1/accounts/ID`: unproven, for whoever is about to sign. */
export interface AccountJson {
  account: Id
  balance: string
  dual: boolean
  /** The ledger knows the account's keys: they need not be sent along. */
  keys_known: boolean
  /** The latest certified Pulse. */
  pulse: number
}

/**
 * A certified header. `GET /v1/pulses/N`, or `GET /v1/pulses/latest` for the newest; 404 `unknown_pulse` where none is
 * certified yet, 404 `certificate_dropped` for a Pulse that was empty and long ago. `certificate` is empty if the asker
 * said `?certificate=0`: it has checked this Pulse before, or asks for the Pulse itself once for many receipts.
 */
export interface PulseJson {
  number: number
  header: string
  certificate: string
}

/** `GET /v1/objects/ID` (`?certificate=0`): an object, or its absence, proven against the state root of `pulse`. */
export interface ObjectJson {
  id: Id
  /** Canonical bytes, or null where the state holds nothing under this id. */
  object: string | null
  proof: unknown
  pulse: PulseJson
}

/** `POST /v1/transactions` with `{ "transaction": "<base64>" }`: taken (202). Sent again it is the same answer. */
export interface SubmittedJson {
  digest: Id
  pulse: number
}

/** `GET /v1/transactions/DIGEST`: the published body of an executed transaction, without its signatures. */
export interface TransactionJson {
  digest: Id
  body: string
  pulse: number
}

/** `GET /v1/receipts/DIGEST?wait=SECONDS` (`&certificate=0`). 404 `unknown_transaction` when there is none by then. */
export interface ReceiptJson {
  receipt: string
  proof: { index: number; size: number; path: string[] }
  pulse: PulseJson
}

/**
 * `GET /v1/knowledge?from=INDEX&limit=N&known=SIZE` (`&certificate=0`): claims of the knowledge log in its order, each with
 * its path to the knowledge root of `pulse`, and the consistency path from the log of `known` entries to that root.
 */
export interface KnowledgeJson {
  entries: { claim: Id; index: number; path: string[] }[]
  consistency: string[]
  pulse: PulseJson
}

/** `GET /v1/events?from=PULSE&limit=N`, oldest first. `tx` is null for what no transaction caused. */
export interface EventJson {
  event: Record<string, unknown>
  pulse: number
  tx: Id | null
}

/** `POST /v1/faucet` with `{ "account": ID, "amount": "USD" }`: a transfer by the devnet's faucet, as submitted. */
export type FaucetJson = SubmittedJson

/** Every answer that is not 2xx: 400 names the field, 404, 422 a refused transaction, 503 the chain is halted. */
export interface ErrorJson {
  error: { code: string; message: string; field?: string }
}
