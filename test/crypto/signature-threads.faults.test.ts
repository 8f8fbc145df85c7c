import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, it } from 'vitest'
import { keysFromSeed } from '../../src/crypto/keys.js'
import { SignatureThreads } from '../../src/crypto/signature-threads.js'
import { startSignatureWorker } from '../../src/crypto/signature-worker.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'

const keys = keysFromSeed(new Uint8Array(32).fill(5))
const message = new Uint8Array(32).fill(6)

/** Workers as they are, whether or not this runtime has native signatures, and a hand on each. */
function watchedThreads(start: () => Worker = startSignatureWorker) {
  const workers: Worker[] = []
  const threads = new SignatureThreads(() => {
    const worker = start()
    workers.push(worker)
    return worker
  })
  opened.push(threads)
  return { threads, workers }
}

const opened: SignatureThreads[] = []

afterEach(async () => {
  await Promise.all(opened.splice(0).map((threads) => threads.close()))
})

const slow = () => ({ scheme: 'slh-dsa-sha2-128f', secret: keys.slhDsaSecret, message }) as const
const quick = () => ({ scheme: 'ml-dsa-44', secret: keys.mlDsaSecret, message }) as const

describe('signature threads', () => {
  it('start with the first work, and an idle worker gets the next', async () => {
    const { threads, workers } = watchedThreads()
    expect(workers).toHaveLength(0)
    await threads.run(quick())
    const signature = await threads.run(quick())
    expect(workers).toHaveLength(1)
    if (!(signature instanceof Uint8Array)) throw new Error('expected a signature')
    expect(await inlineSignatures.verify('ml-dsa-44', keys.publicKeys.mlDsa, message, signature)).toBe(true)
    expect(await threads.run({ scheme: 'ml-dsa-44', publicKey: keys.publicKeys.mlDsa, message, signature })).toBe(true)
    await Promise.all([threads.run(quick()), threads.run(quick())])
    expect(workers).toHaveLength(2)
  })

  it('reject what a crashed worker was doing, and only that, and replace it', async () => {
    const { threads, workers } = watchedThreads()
    await Promise.all([threads.run(quick()), threads.run(quick())])
    const doomed = threads.run(slow())
    const other = threads.run(slow())
    await Promise.all([
      expect(doomed).rejects.toMatchObject({
        code: 'signature_worker_failed',
        message: 'a signature worker stopped with code 1 before it had answered',
      }),
      workers[0]!.terminate(),
    ])
    expect(await other).toHaveLength(17088)
    expect(await Promise.all([threads.run(quick()), threads.run(quick())])).toHaveLength(2)
    expect(workers).toHaveLength(3)
  })

  it('replace a worker that died while it was idle, and nobody notices', async () => {
    const { threads, workers } = watchedThreads()
    await threads.run(quick())
    await workers[0]!.terminate()
    expect(await threads.run(quick())).toHaveLength(2420)
    expect(workers).toHaveLength(2)
  })

  it('hand on what an uncaught error said, and come back after it', async () => {
    let starts = 0
    const { threads } = watchedThreads(() => {
      starts++
      return starts > 1
        ? startSignatureWorker()
        : new Worker(`require('node:worker_threads').parentPort.on('message', () => { throw new Error('out of luck') })`, {
            eval: true,
          })
    })
    await expect(threads.run(quick())).rejects.toMatchObject({
      code: 'signature_worker_failed',
      cause: { message: 'out of luck' },
    })
    expect(await threads.run(quick())).toHaveLength(2420)
  })

  it('reject when a worker cannot be started, one call at a time', async () => {
    let starts = 0
    const { threads } = watchedThreads(() => {
      starts++
      if (starts === 1) throw new Error('no more threads')
      return startSignatureWorker()
    })
    await expect(threads.run(quick())).rejects.toMatchObject({
      code: 'signature_worker_failed',
      cause: { message: 'no more threads' },
    })
    expect(await threads.run(quick())).toHaveLength(2420)
  })

  it('reject what throws inside a worker and keep the worker', async () => {
    const { threads, workers } = watchedThreads()
    const malformed = { scheme: 'slh-dsa-sha2-128f', secret: new Uint8Array(3), message } as const
    await expect(threads.run(malformed)).rejects.toMatchObject({ code: 'signature_failed' })
    expect(await threads.run(quick())).toHaveLength(2420)
    expect(workers).toHaveLength(1)
  })

  it('end at once when they are closed, work or no work', async () => {
    const { threads, workers } = watchedThreads()
    await threads.run(quick())
    const working = threads.run(slow())
    await Promise.all([
      expect(working).rejects.toMatchObject({ code: 'signature_pool_closed' }),
      threads.close(),
    ])
    expect(workers.map((worker) => worker.threadId)).toEqual([-1])
    await expect(threads.run(quick())).rejects.toMatchObject({ code: 'signature_pool_closed' })
  })
})
