import * as P from 'micro-packed'
import { SionError, fromHex, toHex, type Id } from '../codec/index.js'
import { decodeGenesis, encodeGenesis, type Genesis } from '../pulse/index.js'
import { bytesIn, DataFolder, type Table } from './data-folder.js'

/** Where a transaction executed. */
export interface Place {
  readonly pulse: number
  readonly index: number
}

/** A certified header. Canonical bytes. */
export interface StoredPulse {
  readonly header: Uint8Array
  /** Undefined where it was dropped: an empty Pulse, {@link KEPT_EMPTY_PULSES} ago or more. */
  readonly certificate: Uint8Array | undefined
}

/** Everything that one certified Pulse adds. Canonical bytes throughout. */
export interface PulseRecord {
  readonly number: number
  readonly header: Uint8Array
  readonly certificate: Uint8Array
  /** In the certified order. Bodies only: who holds a transaction's signatures holds its buyer's ticket. */
  readonly transactions: readonly { readonly digest: Id; readonly body: Uint8Array; readonly receipt: Uint8Array }[]
  /** `null` deletes. */
  readonly objects: ReadonlyMap<Id, Uint8Array | null>
  /** Objects of this Pulse that a later one prunes: the first Pulse after `validUntil`. */
  readonly expiring: readonly { readonly id: Id; readonly validUntil: number }[]
}

/** Who is who on this chain. The seeds are secret. */
export interface ChainSecrets {
  readonly validatorSeeds: readonly Uint8Array[]
  readonly faucetSeed: Uint8Array
}

/** A certificate is 58 kB, and an idle chain makes 17,000 a day that nobody asks for: 1 GB. */
export const KEPT_EMPTY_PULSES = 1_000

/**
 * The chain on disk, and the only authority on what is certified. A Pulse appears in one durable transaction, at its
 * certification; a validator's vote and the proposal it is for, in another, before its signature leaves it. So after a
 * crash at any moment the chain is at its last certified Pulse, and what was voted on is proposed again as it was.
 *
 *     headers, certificates   Pulse → bytes         digests   digest → Pulse, index
 *     bodies, receipts        Pulse, index → bytes  objects   id → bytes
 *     votes                   validator → Pulse, header hash
 *     expiry                  validUntil, id → nothing
 */
export class Store {
  readonly #folder: DataFolder
  readonly #headers: Table
  readonly #certificates: Table
  readonly #bodies: Table
  readonly #receipts: Table
  readonly #digests: Table
  readonly #objects: Table
  readonly #expiry: Table
  readonly #votes: Table

  private constructor(folder: DataFolder) {
    this.#folder = folder
    this.#headers = folder.table('headers')
    this.#certificates = folder.table('certificates')
    this.#bodies = folder.table('bodies')
    this.#receipts = folder.table('receipts')
    this.#digests = folder.table('digests')
    this.#objects = folder.table('objects')
    this.#expiry = folder.table('expiry')
    this.#votes = folder.table('votes')
  }

  /** @throws SionError as {@link DataFolder.open}. */
  static open(path: string): Store {
    return new Store(DataFolder.open(path))
  }

  /** Undefined in a folder where no chain was begun. */
  chain(): { genesis: Genesis; secrets: ChainSecrets } | undefined {
    const genesis = this.#folder.meta('genesis')
    if (genesis === undefined) return undefined
    return { genesis: decodeGenesis(genesis), secrets: secrets.decode(this.#required('secrets')) }
  }

  begin(genesis: Genesis, secret: ChainSecrets, objects: ReadonlyMap<Id, Uint8Array>): void {
    this.#folder.transaction(() => {
      this.#folder.putMeta('genesis', encodeGenesis(genesis))
      this.#folder.putMeta('secrets', secrets.encode({ ...secret, validatorSeeds: [...secret.validatorSeeds] }))
      for (const [id, bytes] of objects) this.#objects.putSync(keyOfId(id), Buffer.from(bytes))
    })
  }

  /** The number of the last certified Pulse; 0 for the genesis. */
  latest(): number {
    for (const key of this.#headers.getKeys({ reverse: true, limit: 1 })) return numberIn(key)
    return 0
  }

  pulse(number: number): StoredPulse | undefined {
    const key = keyOfNumber(number)
    const header = bytesIn(this.#headers, key)
    return header === undefined ? undefined : { header, certificate: bytesIn(this.#certificates, key) }
  }

  object(id: Id): Uint8Array | undefined {
    return bytesIn(this.#objects, keyOfId(id))
  }

  *objects(): Generator<[Id, Uint8Array]> {
    for (const { key, value } of this.#objects.getRange()) yield [toHex(key), new Uint8Array(value)]
  }

  /** What is to be pruned in Pulse `number`: whatever was valid until an earlier one. */
  expiredIn(number: number): Id[] {
    const ids: Id[] = []
    for (const key of this.#expiry.getKeys({ end: keyOfNumber(number) })) ids.push(toHex(bytesOf(key).subarray(8)))
    return ids
  }

  placeOf(digest: Id): Place | undefined {
    const bytes = bytesIn(this.#digests, keyOfId(digest))
    return bytes === undefined ? undefined : placeIn(bytes)
  }

  body(place: Place): Uint8Array | undefined {
    return bytesIn(this.#bodies, keyOfPlace(place))
  }

  /** All receipts of a Pulse, in order. */
  receiptsOf(pulse: number): Uint8Array[] {
    const range = { start: keyOfPlace({ pulse, index: 0 }), end: keyOfPlace({ pulse: pulse + 1, index: 0 }) }
    return Array.from(this.#receipts.getRange(range), ({ value }) => new Uint8Array(value))
  }

  /** Receipts from the first one of Pulse `from` on, oldest first. */
  *receiptsFrom(from: number): Generator<Uint8Array> {
    for (const { value } of this.#receipts.getRange({ start: keyOfPlace({ pulse: from, index: 0 }) })) yield new Uint8Array(value)
  }

  /** How many transactions executed, ever. */
  executed(): number {
    const bytes = this.#folder.meta('executed')
    return bytes === undefined ? 0 : numberIn(bytes)
  }

  /** What was proposed and not certified yet, as {@link Store.recordVotes} was given it. */
  proposal(): Uint8Array | undefined {
    return this.#folder.meta('proposal')
  }

  /** The last header a validator voted for. */
  voteOf(validator: number): { number: number; headerHash: Id } | undefined {
    const bytes = bytesIn(this.#votes, keyOfNumber(validator))
    return bytes === undefined ? undefined : { number: numberIn(bytes), headerHash: toHex(bytes.subarray(8)) }
  }

  /**
   * Notes, before any of them signs, that `validators` vote for this header, with the proposal that they can be asked
   * about again. A validator's number only grows, and one number has one header.
   * @throws SionError `double_vote` if that would be broken; then nothing is noted.
   */
  recordVotes(vote: { number: number; headerHash: Id }, validators: readonly number[], proposal: Uint8Array): void {
    this.#folder.transaction(() => {
      for (const validator of validators) {
        const last = this.voteOf(validator)
        if (last !== undefined && (last.number > vote.number || (last.number === vote.number && last.headerHash !== vote.headerHash))) {
          throw new SionError(
            'double_vote',
            `validator ${validator} voted for ${last.headerHash.slice(0, 8)} as Pulse ${last.number}, and cannot vote for ${vote.headerHash.slice(0, 8)} as Pulse ${vote.number}`,
          )
        }
      }
      const value = Buffer.concat([keyOfNumber(vote.number), keyOfId(vote.headerHash)])
      for (const validator of validators) this.#votes.putSync(keyOfNumber(validator), value)
      this.#folder.putMeta('proposal', proposal)
    })
  }

  /** @throws SionError `not_the_next_pulse` unless it is. */
  commit(record: PulseRecord): void {
    const { number, transactions } = record
    this.#folder.transaction(() => {
      if (number !== this.latest() + 1) {
        throw new SionError('not_the_next_pulse', `Pulse ${number} cannot follow Pulse ${this.latest()}`)
      }
      this.#headers.putSync(keyOfNumber(number), Buffer.from(record.header))
      this.#certificates.putSync(keyOfNumber(number), Buffer.from(record.certificate))
      for (const [index, { digest, body, receipt }] of transactions.entries()) {
        const place = keyOfPlace({ pulse: number, index })
        this.#bodies.putSync(place, Buffer.from(body))
        this.#receipts.putSync(place, Buffer.from(receipt))
        this.#digests.putSync(keyOfId(digest), place)
      }
      for (const [id, bytes] of record.objects) {
        if (bytes === null) this.#objects.removeSync(keyOfId(id))
        else this.#objects.putSync(keyOfId(id), Buffer.from(bytes))
      }
      for (const key of Array.from(this.#expiry.getKeys({ end: keyOfNumber(number) }))) this.#expiry.removeSync(key)
      for (const { id, validUntil } of record.expiring) {
        this.#expiry.putSync(Buffer.concat([keyOfNumber(validUntil), keyOfId(id)]), NOTHING)
      }
      this.#folder.putMeta('executed', keyOfNumber(this.executed() + transactions.length))
      this.#folder.removeMeta('proposal')
      this.#dropEmptyCertificate(number - KEPT_EMPTY_PULSES)
    })
  }

  close(): Promise<void> {
    return this.#folder.close()
  }

  #dropEmptyCertificate(number: number): void {
    if (number < 1 || this.#receipts.doesExist(keyOfPlace({ pulse: number, index: 0 }))) return
    this.#certificates.removeSync(keyOfNumber(number))
  }

  #required(key: string): Uint8Array {
    const bytes = this.#folder.meta(key)
    if (bytes === undefined) throw new SionError('data_folder_unusable', `the data folder ${this.#folder.path} lacks its ${key}`)
    return bytes
  }
}

const secrets: P.CoderType<{ validatorSeeds: Uint8Array[]; faucetSeed: Uint8Array }> = P.struct({
  validatorSeeds: P.array(P.U16BE, P.bytes(32)),
  faucetSeed: P.bytes(32),
})

/** The key says it all. */
const NOTHING = Buffer.from([0])

function keyOfId(id: Id): Buffer {
  return Buffer.from(fromHex(id, 'id', 32))
}

function keyOfNumber(number: number): Buffer {
  const key = Buffer.alloc(8)
  key.writeBigUInt64BE(BigInt(number))
  return key
}

function keyOfPlace({ pulse, index }: Place): Buffer {
  const key = Buffer.alloc(12)
  key.writeBigUInt64BE(BigInt(pulse))
  key.writeUInt32BE(index, 8)
  return key
}

function bytesOf(key: Uint8Array): Buffer {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength)
}

function numberIn(bytes: Uint8Array): number {
  return Number(bytesOf(bytes).readBigUInt64BE(0))
}

function placeIn(bytes: Uint8Array): Place {
  return { pulse: numberIn(bytes), index: bytesOf(bytes).readUInt32BE(8) }
}
