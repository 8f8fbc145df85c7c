import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { performance } from 'node:perf_hooks'
import { promisify } from 'node:util'
import { afterEach, describe, expect, it } from 'vitest'
import { keysFromSeed, LENGTHS, publicKeyOf, type SignatureScheme } from '../../src/crypto/keys.js'
import { createSignaturePool, type SignaturePool } from '../../src/crypto/signature-pool.js'
import { inlineSignatures, nativeSignatures } from '../../src/crypto/signatures.js'

const keys = keysFromSeed(new Uint8Array(32).fill(3))
const message = new Uint8Array(32).fill(4)

const pools: SignaturePool[] = []

function pool(options?: { threads?: number }): SignaturePool {
  const created = createSignaturePool(options)
  pools.push(created)
  return created
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((created) => created.close()))
})

describe('a signature pool', () => {
  it('says whether it is native', () => {
    expect(pool().native).toBe(nativeSignatures())
  })

  it.each<SignatureScheme>(['ml-dsa-44', 'slh-dsa-sha2-128f'])('signs and verifies %s, as inline does', async (scheme) => {
    const { sign, verify } = pooled(pool())
    const publicKey = publicKeyOf(scheme, keys.publicKeys)
    const signature = await sign(scheme, keys, message)
    expect(signature).toHaveLength(LENGTHS[scheme].signature)
    expect(Object.getPrototypeOf(signature)).toBe(Uint8Array.prototype)
    expect(await inlineSignatures.verify(scheme, publicKey, message, signature)).toBe(true)
    expect(await verify(scheme, publicKey, message, signature)).toBe(true)
    expect(await verify(scheme, publicKey, new Uint8Array(32), signature)).toBe(false)
    signature[100]! ^= 1
    expect(await verify(scheme, publicKey, message, signature)).toBe(false)
  })

  it('does a hundred jobs at once, and each caller gets its own answer', async () => {
    const { sign, verify } = pooled(pool({ threads: 2 }))
    const publicKey = keys.publicKeys.mlDsa
    const jobs = Array.from({ length: 50 }, async (_, n) => {
      const digest = new Uint8Array(32).fill(n)
      const signature = await sign('ml-dsa-44', keys, digest)
      return [
        await verify('ml-dsa-44', publicKey, digest, signature),
        await verify('ml-dsa-44', publicKey, new Uint8Array(32).fill(n + 1), signature),
      ]
    })
    expect(await Promise.all(jobs)).toEqual(jobs.map(() => [true, false]))
  })

  it('works in the order in which the work came', async () => {
    const { sign } = pooled(pool({ threads: 1 }))
    const done: number[] = []
    await Promise.all(
      Array.from({ length: 8 }, async (_, n) => {
        await sign('ml-dsa-44', keys, new Uint8Array(32).fill(n))
        done.push(n)
      }),
    )
    expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
  })

  it('leaves the event loop free while it signs', async () => {
    const { sign } = pooled(pool({ threads: 1 }))
    await sign('ml-dsa-44', keys, message)
    let ticks = 0
    const timer = setInterval(() => ticks++, 1)
    const before = performance.eventLoopUtilization()
    await Promise.all(Array.from({ length: 6 }, () => sign('slh-dsa-sha2-128f', keys, message)))
    const { utilization } = performance.eventLoopUtilization(before)
    clearInterval(timer)
    // Inline this is 1 and no tick. A loaded machine slows both sides alike.
    expect(utilization).toBeLessThan(0.5)
    expect(ticks).toBeGreaterThan(6)
  })

  it('takes what it is given at the call: the caller may reuse its buffers at once', async () => {
    const { sign, verify } = pooled(pool({ threads: 1 }))
    const buffer = message.slice()
    const signing = [sign('ml-dsa-44', keys, buffer), sign('ml-dsa-44', keys, buffer)]
    buffer.fill(0)
    for (const signature of await Promise.all(signing)) {
      expect(await verify('ml-dsa-44', keys.publicKeys.mlDsa, message, signature)).toBe(true)
      const memory = new Uint8Array(5000)
      memory.set(signature, 7)
      const view = memory.subarray(7, 7 + signature.length)
      const verifying = [1, 2].map(() => verify('ml-dsa-44', keys.publicKeys.mlDsa, message, view))
      memory.fill(0)
      expect(await Promise.all(verifying)).toEqual([true, true])
    }
  })

  it('refuses wrong lengths as inline does', async () => {
    const { sign, verify } = pooled(pool())
    expect(await verify('ml-dsa-44', new Uint8Array(1311), message, new Uint8Array(2420))).toBe(false)
    expect(await verify('slh-dsa-sha2-128f', new Uint8Array(32), message, new Uint8Array(17087))).toBe(false)
    const malformed = { ...keys, mlDsaSecret: new Uint8Array(2560) }
    await expect(sign('ml-dsa-44', malformed, message)).rejects.toMatchObject({ code: 'malformed_key' })
    await expect(sign('ml-dsa-44', keys, new Uint8Array(3))).rejects.toMatchObject({ code: 'malformed_message' })
  })

  it('once closed rejects what waited and what comes, and can be closed again', async () => {
    const created = pool({ threads: 1 })
    const jobs = Array.from({ length: 5 }, () => created.sign('slh-dsa-sha2-128f', keys, message))
    const outcomes = Promise.allSettled(jobs)
    await created.close()
    const [first, ...rest] = await outcomes
    // Native work that has begun cannot be stopped; a worker can.
    if (!created.native) expect(first).toMatchObject({ reason: { code: 'signature_pool_closed' } })
    expect(rest).toHaveLength(4)
    for (const outcome of rest) expect(outcome).toMatchObject({ reason: { code: 'signature_pool_closed' } })
    await expect(created.sign('ml-dsa-44', keys, message)).rejects.toMatchObject({ code: 'signature_pool_closed' })
    await expect(
      created.verify('ml-dsa-44', keys.publicKeys.mlDsa, message, new Uint8Array(2420)),
    ).rejects.toMatchObject({ code: 'signature_pool_closed' })
    await created.close()
  })

  it.each([0, -1, 1.5, 65, Number.NaN])('is not made of %d threads', (threads) => {
    expect(() => createSignaturePool({ threads })).toThrow(
      expect.objectContaining({ code: 'invalid_option', message: `threads: expected a whole number from 1 to 64, not ${threads}` }),
    )
  })

  it('refuses an option that it does not know', () => {
    const options = { threads: 2, retries: 1 }
    expect(() => createSignaturePool(options)).toThrow('a signature pool has no option "retries"')
  })
})

describe('a built signature pool', () => {
  it('finishes its work, then lets the process end by itself, and prints nothing', async () => {
    const built = (name: string) => JSON.stringify(new URL(`../../dist/crypto/${name}.js`, import.meta.url).href)
    const program = `
      import { keysFromSeed } from ${built('keys')}
      import { createSignaturePool } from ${built('signature-pool')}
      const pool = createSignaturePool({ threads: 2 })
      for (const scheme of ['ml-dsa-44', 'slh-dsa-sha2-128f']) {
        pool.sign(scheme, keysFromSeed(new Uint8Array(32)), new Uint8Array(32)).then(({ length }) => console.log(length))
      }`
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], {
      // Not the project's folder: the worker finds its dependencies from where the package is.
      cwd: tmpdir(),
      timeout: 50_000,
    })
    expect(stdout.trim().split('\n').sort()).toEqual(['17088', '2420'])
    expect(stderr).toBe('')
  })
})

function pooled(created: SignaturePool) {
  return {
    sign: (...args: Parameters<SignaturePool['sign']>) => created.sign(...args),
    verify: (...args: Parameters<SignaturePool['verify']>) => created.verify(...args),
  }
}
