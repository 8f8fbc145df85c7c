import * as P from 'micro-packed'
import { count, id, list, unpack, type Id } from '../codec/index.js'
import { taggedHash } from '../crypto/hash.js'
import { SIZES } from '../crypto/keys.js'

/** One validator's two signatures over {@link voteMessage}. Its stake comes from the proven set, never from here. */
export interface Vote {
  /** Its place in the validator set. */
  readonly validator: number
  readonly mlDsa: Uint8Array
  readonly slhDsa: Uint8Array
}

/** Votes of more than two thirds of the stake for one header. */
export interface Certificate {
  readonly epoch: number
  readonly number: number
  readonly headerHash: Id
  /** In ascending order of `validator`, each at most once: one set of votes, one encoding. */
  readonly votes: Vote[]
}

const vote = P.struct({
  validator: P.U16BE,
  mlDsa: P.bytes(SIZES.mlDsaSignature),
  slhDsa: P.bytes(SIZES.slhDsaSignature),
})

const certificate: P.CoderType<Certificate> = P.struct({
  epoch: count,
  number: count,
  headerHash: id,
  votes: list(vote, 256),
})

export function encodeCertificate(value: Certificate): Uint8Array {
  return certificate.encode(value)
}

/**
 * Shape only: neither signatures nor stake are checked here.
 * @throws InputError unless `bytes` are the canonical encoding of a certificate.
 */
export function decodeCertificate(bytes: Uint8Array): Certificate {
  return unpack(certificate, bytes, 'certificate')
}

const message = P.struct({ chain: id, epoch: count, number: count, headerHash: id })

/** What a validator signs, with both algorithms: chain, epoch and number, so that no vote serves for another Pulse. */
export function voteMessage(vote: { chain: Id; epoch: number; number: number; headerHash: Id }): Uint8Array {
  return taggedHash('sion/pulse-vote/v1', message.encode(vote))
}

