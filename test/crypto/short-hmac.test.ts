import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { shortHmac } from '../../src/crypto/short-hmac.js'

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex')

describe('the HMAC for short messages', () => {
  it.each([
    // RFC 4231 §4.2, §4.3, §4.4, §4.5.
    ['0b'.repeat(20), Buffer.from('Hi There').toString('hex'), 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'],
    [Buffer.from('Jefe').toString('hex'), Buffer.from('what do ya want for nothing?').toString('hex'), '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'],
    ['aa'.repeat(20), 'dd'.repeat(50), '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe'],
    ['0102030405060708090a0b0c0d0e0f10111213141516171819', 'cd'.repeat(50), '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b'],
  ])('gives the vectors of RFC 4231: key %s', (key, message, expected) => {
    const bytes = Buffer.from(message, 'hex')
    expect(hex(shortHmac(Buffer.from(key, 'hex'))(bytes, bytes.length))).toBe(expected)
  })

  it('gives what node:crypto gives, for every length around a block’s edge', () => {
    const key = new Uint8Array(32).fill(9)
    const hmac = shortHmac(key)
    const message = Uint8Array.from({ length: 260 }, (_, i) => i)
    for (let length = 0; length <= message.length; length++) {
      expect(hex(hmac(message, length))).toBe(createHmac('sha256', key).update(message.subarray(0, length)).digest('hex'))
    }
  })

  it('gives what node:crypto gives, whatever the key and the message, also when keys are used in turn', () => {
    const bytes = fc.uint8Array({ maxLength: 300 })
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.uint8Array({ maxLength: 64 }), fc.array(bytes, { maxLength: 4 }), (one, other, messages) => {
        const hmacs = [shortHmac(one), shortHmac(other)]
        for (const message of messages) {
          for (const [i, key] of [one, other].entries()) {
            expect(hex(hmacs[i]!(message, message.length))).toBe(createHmac('sha256', key).update(message).digest('hex'))
          }
        }
      }),
    )
  })

  it('takes no key over a block: hashing it first is not its business', () => {
    expect(() => shortHmac(new Uint8Array(65))).toThrow(RangeError)
  })
})
