import { shortId } from '../../codec/index.js'
import type { Signatures } from '../../crypto/signatures.js'
import {
  decodeCertificate,
  headerHash,
  validatorId,
  voteMessage,
  type Certificate,
  type Header,
  type Validator,
  type Vote,
} from '../../pulse/index.js'
import { LightClientError } from '../errors.js'
import { canonical } from './canonical.js'
import type { ProvenSet } from './genesis.js'

/** How much stake, in micro-USD, signed, was needed, and exists. */
export interface Tally {
  readonly signed: bigint
  readonly quorum: bigint
  readonly total: bigint
}

/**
 * Whether more than two thirds of the set's stake signed this header, with both algorithms each. Everything that costs
 * nothing is checked before the first signature. Then every vote is: one bad signature spoils the certificate, beyond a
 * quorum of good ones too, since no honest node passes one on.
 *
 * `header` must have gone through `checkHeader`: that ties it to the chain, and the set to it.
 * @throws LightClientError `not_canonical`, `wrong_header`, `wrong_number`, `wrong_epoch`, `empty_certificate`,
 * `unknown_signer`, `duplicate_signer`, `votes_out_of_order`, `under_quorum`, `bad_signature`.
 */
export async function checkCertificate(
  header: Header,
  certificateBytes: Uint8Array,
  proven: ProvenSet,
  verify: Signatures['verify'],
): Promise<Tally> {
  const certificate = canonical(decodeCertificate, certificateBytes)
  checkSubject(header, certificate)
  const voters = votersOf(certificate, proven.set)
  const signed = voters.reduce((sum, { validator }) => sum + validator.stake, 0n)
  if (signed < proven.quorum) {
    throw new LightClientError('under_quorum', `Pulse ${header.number}: ${signed} of ${proven.total} stake signed, below the quorum of ${proven.quorum}`)
  }
  const message = voteMessage({
    chain: header.chain,
    epoch: certificate.epoch,
    number: certificate.number,
    headerHash: certificate.headerHash,
  })
  await Promise.all(voters.map((voter) => checkVote(voter, message, header, verify)))
  return { signed, quorum: proven.quorum, total: proven.total }
}

function checkSubject(header: Header, { epoch, number, headerHash: hash }: Certificate): void {
  if (number !== header.number) {
    throw new LightClientError('wrong_number', `the certificate is for Pulse ${number}, not for Pulse ${header.number}`)
  }
  if (epoch !== header.epoch) {
    throw new LightClientError('wrong_epoch', `the certificate is of epoch ${epoch}, the header of epoch ${header.epoch}`)
  }
  const expected = headerHash(header)
  if (hash !== expected) {
    throw new LightClientError('wrong_header', `the certificate is for header ${shortId(hash)}, not for ${shortId(expected)} of Pulse ${header.number}`)
  }
}

interface Voter {
  readonly vote: Vote
  readonly validator: Validator
}

/** The votes with the validators of the proven set: keys and stake come from there and from nowhere else. */
function votersOf({ votes }: Certificate, set: readonly Validator[]): Voter[] {
  if (votes.length === 0) throw new LightClientError('empty_certificate', 'a certificate without a single vote')
  let previous = -1
  const seen = new Set<number>()
  return votes.map((vote) => {
    const { validator: place } = vote
    const validator = set[place]
    if (validator === undefined) {
      throw new LightClientError('unknown_signer', `a vote of validator ${place}; the set has ${set.length}, from 0`)
    }
    if (seen.has(place)) throw new LightClientError('duplicate_signer', `validator ${place} votes twice in one certificate`)
    if (place < previous) {
      throw new LightClientError('votes_out_of_order', `the vote of validator ${place} after that of validator ${previous}`)
    }
    seen.add(place)
    previous = place
    return { vote, validator }
  })
}

async function checkVote({ vote, validator }: Voter, message: Uint8Array, header: Header, verify: Signatures['verify']): Promise<void> {
  const bad = (algorithm: string): LightClientError =>
    new LightClientError(
      'bad_signature',
      `Pulse ${header.number}: the ${algorithm} signature of validator ${vote.validator} (${shortId(validatorId(validator.keys))}) is not good`,
    )
  // The lattice signature first: it is the cheap one to refuse by.
  if (!(await verify('ml-dsa-44', validator.keys.mlDsa, message, vote.mlDsa))) throw bad('ML-DSA-44')
  if (!(await verify('slh-dsa-sha2-128f', validator.keys.slhDsa, message, vote.slhDsa))) throw bad('SLH-DSA-SHA2-128f')
}
