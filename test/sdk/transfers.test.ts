import { describe, expect, it } from 'vitest'
import { InputError } from '../../src/codec/index.js'
import { inlineSignatures } from '../../src/crypto/signatures.js'
import { fromHex } from '../../src/codec/index.js'
import { accountOf, decodeSigned, digestOf, intentSentence, DEFAULT_PARAMETERS } from '../../src/ledger/index.js'
import { buildTransaction, buildTransfer, devnetWallet, signTransaction, walletFromSeed } from '../../src/sdk/index.js'

const chain = 'c0'.repeat(32)
const dana = devnetWallet('dana')
const bob = devnetWallet('bob')
const options = { wallet: dana, chain, pulse: 8, to: bob.account, amount: 1_500_000n }

describe('a wallet', () => {
  it('derives its account from its keys, and the same from the same seed', () => {
    expect(dana.account).toBe(accountOf(dana.publicKeys))
    expect(devnetWallet('dana').account).toBe(dana.account)
    expect(bob.account).not.toBe(dana.account)
    expect(dana.name).toBe('dana')
  })

  it('from a bare seed has no name, and needs 32 bytes', () => {
    expect(walletFromSeed(new Uint8Array(32).fill(7)).name).toBeUndefined()
    expect(() => walletFromSeed(new Uint8Array(31))).toThrow(expect.objectContaining({ code: 'malformed_key' }))
  })

  it('shows no secret when it is printed', () => {
    const seed = new Uint8Array(32).fill(7)
    expect(Object.keys(walletFromSeed(seed)).sort()).toEqual(['account', 'publicKeys', 'sign', 'signDual'])
  })

  it('signs with what it is given to sign with', async () => {
    const asked: string[] = []
    const wallet = devnetWallet('dana', {
      signatures: {
        ...inlineSignatures,
        sign: async (scheme) => {
          asked.push(scheme)
          return new Uint8Array(3)
        },
      },
    })
    expect(await wallet.sign(new Uint8Array(32))).toEqual({ mlDsa: new Uint8Array(3) })
    expect(asked).toEqual(['ml-dsa-44'])
    await wallet.signDual(new Uint8Array(32))
    expect(asked.sort()).toEqual(['ml-dsa-44', 'ml-dsa-44', 'slh-dsa-sha2-128f'])
  })
})

describe('building a transfer', () => {
  it('fixes chain, signer, payee, amount and the last Pulse, 20 ahead by default', () => {
    const body = buildTransfer({ ...options, purpose: 'x402:00' })
    expect(body).toMatchObject({
      chain,
      signer: dana.account,
      validUntil: 28,
      action: { kind: 'transfer', to: bob.account, amount: 1_500_000n, purpose: 'x402:00' },
    })
    expect(intentSentence(buildTransfer(options), DEFAULT_PARAMETERS, () => 'bob')).toBe('Pay 1.5 USD to bob. Fee 0.0011 USD; valid until Pulse 28.')
  })

  it('uses a fresh nonce each time: two alike are two payments', () => {
    expect(digestOf(buildTransfer(options))).not.toBe(digestOf(buildTransfer(options)))
  })

  it.each([
    ['amount', { amount: 0n }],
    ['amount', { amount: -1n }],
    ['to', { to: 'bob' }],
    ['chain', { chain: 'x' }],
    ['purpose', { purpose: 'x'.repeat(121) }],
    ['purpose', { purpose: 'é'.repeat(61) }],
    ['purpose', { purpose: 'a\nb' }],
    ['purpose', { purpose: '\ud800' }],
    ['validForPulses', { validForPulses: 0 }],
    ['validForPulses', { validForPulses: 1_001 }],
    ['validForPulses', { validForPulses: 1.5 }],
    ['pulse', { pulse: -1 }],
    ['pulse', { pulse: Number.NaN }],
  ])('refuses a bad %s: %o', (field, change) => {
    expect(() => buildTransfer({ ...options, ...change })).toThrow(expect.objectContaining({ field }))
    expect(() => buildTransfer({ ...options, ...change })).toThrow(InputError)
  })

  it('takes the limits themselves', () => {
    expect(buildTransfer({ ...options, validForPulses: 1_000, purpose: 'é'.repeat(60), pulse: 0 }).validUntil).toBe(1_000)
    expect(buildTransaction({ kind: 'setDual', dual: true }, { ...options, validForPulses: 1 }).validUntil).toBe(9)
  })
})

describe('signing', () => {
  const verify = (signed: Awaited<ReturnType<typeof signTransaction>>) =>
    inlineSignatures.verify('ml-dsa-44', dana.publicKeys.mlDsa, fromHex(signed.digest, 'digest'), signed.transaction.mlDsa)

  it('covers the digest, and sends no keys that the ledger knows', async () => {
    const body = buildTransfer(options)
    const signed = await signTransaction(dana, body, { keysKnown: true, dual: false })
    expect(signed.digest).toBe(digestOf(body))
    expect(await verify(signed)).toBe(true)
    expect(decodeSigned(signed.bytes)).toEqual({ ...signed.transaction, keys: undefined, slhDsa: undefined })
    expect(signed.bytes.length).toBeLessThan(2_700)
  })

  it('sends the keys along until the ledger knows them', async () => {
    const signed = await signTransaction(dana, buildTransfer(options), { keysKnown: false, dual: false })
    expect(decodeSigned(signed.bytes).keys).toEqual(dana.publicKeys)
    expect(signed.bytes.length).toBeLessThan(4_100)
  })

  it('adds SLH-DSA where the account is dual', async () => {
    const signed = await signTransaction(dana, buildTransfer(options), { keysKnown: true, dual: true })
    expect(await verify(signed)).toBe(true)
    const { slhDsa } = signed.transaction
    expect(slhDsa).toBeDefined()
    const message = fromHex(signed.digest, 'digest')
    expect(await inlineSignatures.verify('slh-dsa-sha2-128f', dana.publicKeys.slhDsa, message, slhDsa ?? new Uint8Array())).toBe(true)
  })

  it('refuses to sign for another account', async () => {
    await expect(signTransaction(bob, buildTransfer(options), { keysKnown: true, dual: false })).rejects.toMatchObject({ field: 'wallet' })
  })
})
