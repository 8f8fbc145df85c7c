/**
 * The chain step beside `crypto.hash`, and what a payer's chain costs: set-up, reveals and memory for 10^3 to 10^6
 * elements. `npm run bench:chain`.
 */
import * as crypto from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createWalker } from '../src/crypto/chain-step.js'
import { PayerChain } from '../src/sdk/streams/payer-chain.js'

const STEPS = 1_000_000

const salt = crypto.randomBytes(16)
const value = new Uint8Array(crypto.randomBytes(32))

function ours(): Uint8Array {
  return createWalker(salt).down(value, STEPS, 0)
}

function native(): Uint8Array {
  const message = Buffer.alloc(52)
  message.set(salt)
  message.set(value, 20)
  for (let position = STEPS; position > 0; position--) {
    message.writeUInt32BE(position, 16)
    message.set(crypto.hash('sha256', message, 'buffer'), 20)
  }
  return new Uint8Array(message.subarray(20))
}

/** Nanoseconds a step: the middle of three walks. */
function time(walk: () => Uint8Array): { nanoseconds: number; end: Uint8Array } {
  const times: number[] = []
  let end = new Uint8Array()
  for (let run = 0; run < 3; run++) {
    const start = performance.now()
    end = new Uint8Array(walk())
    times.push(((performance.now() - start) * 1e6) / STEPS)
  }
  times.sort((a, b) => a - b)
  return { nanoseconds: times[1]!, end }
}

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

function memory(): number {
  // Twice: what the first finds of array buffers the second frees.
  collectGarbage()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

async function chainOf(length: number): Promise<string> {
  const before = memory()
  const start = performance.now()
  const chain = await PayerChain.build({ seed: value, salt, length })
  const setup = performance.now() - start
  const held = memory() - before
  const reveals = Math.min(length, 200_000)
  let total = 0
  let slowest = 0
  let mostHashes = 0
  for (let position = 1; position <= reveals; position++) {
    const hashed = chain.hashed
    const began = performance.now()
    chain.reveal(position)
    const took = performance.now() - began
    total += took
    if (took > slowest) slowest = took
    if (chain.hashed - hashed > mostHashes) mostHashes = chain.hashed - hashed
  }
  return [
    length.toLocaleString('en').padStart(10),
    `${setup.toFixed(0)} ms`.padStart(10),
    `${((total * 1e3) / reveals).toFixed(2)} µs`.padStart(12),
    `${(slowest * 1e3).toFixed(0)} µs`.padStart(12),
    `${mostHashes}`.padStart(12),
    `${(held / 1024).toFixed(0)} KiB`.padStart(12),
  ].join('')
}

const mine = time(ours)
const theirs = time(native)
if (Buffer.compare(mine.end, theirs.end) !== 0) throw new Error('the two walks end at different elements')
console.log(`A walk of ${STEPS.toLocaleString('en')} steps, nanoseconds a step (node ${process.version}):`)
console.log(`  chain step   ${mine.nanoseconds.toFixed(0)}`)
console.log(`  crypto.hash  ${theirs.nanoseconds.toFixed(0)}   (${(theirs.nanoseconds / mine.nanoseconds).toFixed(1)} times as long)`)
console.log('')
console.log('  elements     set-up  mean reveal slowest (GC) hashes, most      memory')
for (const length of [1_000, 10_000, 100_000, 1_000_000]) console.log(await chainOf(length))
