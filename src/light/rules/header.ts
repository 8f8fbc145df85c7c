import { shortId, type Id } from '../../codec/index.js'
import { decodeHeader, headerHash, type Header } from '../../pulse/index.js'
import { LightClientError } from '../errors.js'
import { canonical } from './canonical.js'
import type { Trust } from './genesis.js'

/**
 * Whether header bytes can be of the trusted chain at all: everything but the certificate, which costs more.
 * @throws LightClientError `not_canonical`, `wrong_chain`, `wrong_epoch`, `wrong_validator_set`, `wrong_config`,
 * `wrong_number` (0: that is the genesis), `wrong_parent`.
 */
export function checkHeader(bytes: Uint8Array, trust: Trust): { header: Header; headerHash: Id } {
  const header = canonical(decodeHeader, bytes)
  const pulse = `the header of Pulse ${header.number}`
  if (header.chain !== trust.chain) {
    throw new LightClientError('wrong_chain', `${pulse} is of chain ${shortId(header.chain)}, not of ${shortId(trust.chain)}`)
  }
  if (header.epoch !== trust.epoch) {
    throw new LightClientError('wrong_epoch', `${pulse} is of epoch ${header.epoch}; the proven validator set is that of epoch ${trust.epoch}`)
  }
  if (header.validatorSetHash !== trust.setHash) {
    throw new LightClientError('wrong_validator_set', `${pulse} names validator set ${shortId(header.validatorSetHash)}; the proven one is ${shortId(trust.setHash)}`)
  }
  if (header.configHash !== trust.configHash) {
    throw new LightClientError('wrong_config', `${pulse} names configuration ${shortId(header.configHash)}; the genesis fixes ${shortId(trust.configHash)}`)
  }
  if (header.number === 0) throw new LightClientError('wrong_number', 'a header for Pulse 0, which is the genesis and has none')
  if (header.number === 1 && header.parent !== trust.genesisHash) {
    throw new LightClientError('wrong_parent', `Pulse 1 builds on ${shortId(header.parent)}, not on the genesis ${shortId(trust.genesisHash)}`)
  }
  return { header, headerHash: headerHash(header) }
}

/** @throws LightClientError `wrong_number` unless the header is that of Pulse `asked`. */
export function checkNumber(header: Header, asked: number): void {
  if (header.number !== asked) {
    throw new LightClientError('wrong_number', `asked about Pulse ${asked}, the node showed the header of Pulse ${header.number}`)
  }
}

/**
 * @param now milliseconds since the Unix epoch, like the header's time.
 * @throws LightClientError `header_from_future` for a time more than `maxDriftMs` ahead of `now`.
 */
export function checkHeaderTime(header: Header, now: number, maxDriftMs: number): void {
  const ahead = header.time - now
  if (ahead > maxDriftMs) {
    throw new LightClientError(
      'header_from_future',
      `Pulse ${header.number} is ${ahead} ms ahead of this machine’s clock; at most ${maxDriftMs} ms are put down to drift`,
    )
  }
}

/** @throws LightClientError `stale_header` for a header older than `maxAgeMs`. */
export function checkFresh(header: Header, now: number, maxAgeMs: number): void {
  const age = now - header.time
  if (age > maxAgeMs) {
    throw new LightClientError(
      'stale_header',
      `the newest header that the node shows is Pulse ${header.number}, ${age} ms old; at most ${maxAgeMs} ms are fresh. The chain has halted, or the node hides newer Pulses`,
    )
  }
}

/** @throws LightClientError `stale_header` for a Pulse before `seen`, which the node itself showed earlier. */
export function checkNoRegress(header: Header, seen: number): void {
  if (header.number < seen) {
    throw new LightClientError('stale_header', `the node shows Pulse ${header.number} as its newest, and showed Pulse ${seen} before`)
  }
}
