export { decodeCertificate, encodeCertificate, voteMessage, type Certificate, type Vote } from './certificate.js'
export { chainOf, decodeGenesis, encodeGenesis, genesisHash, networkOf, type Genesis } from './genesis.js'
export { decodeHeader, encodeHeader, headerHash, nextBeacon, ZERO_ID, type Header } from './header.js'
export {
  quorumOf,
  totalStake,
  validatorId,
  validatorSetHash,
  validatorSetProblem,
  validators,
  type Validator,
} from './validator-set.js'
