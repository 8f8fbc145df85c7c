import { describe, expect, it } from 'vitest'
import { Waiters } from '../../src/node/waiters.js'

const never = new AbortController().signal

describe('long polls', () => {
  it('end when they are woken, when time is over, and when the client is gone, and leave nothing behind', async () => {
    const waiters = new Waiters()
    const gone = new AbortController()
    const polls = [waiters.wait('a', 60_000, never), waiters.wait('a', 60_000, never), waiters.wait('b', 10, never), waiters.wait('c', 60_000, gone.signal)]
    expect(waiters.size).toBe(4)
    waiters.wake('a')
    waiters.wake('nobody')
    gone.abort()
    expect(await Promise.all(polls)).toEqual([true, true, false, false])
    expect(waiters.size).toBe(0)
    expect(await waiters.wait('d', 60_000, gone.signal)).toBe(false)
    expect(waiters.size).toBe(0)
  })
})
