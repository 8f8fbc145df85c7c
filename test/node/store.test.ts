import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { toHex } from '../../src/codec/index.js'
import { DataFolder } from '../../src/node/data-folder.js'
import { newDevnet } from '../../src/node/devnet-genesis.js'
import { KEPT_EMPTY_PULSES, Store, type PulseRecord } from '../../src/node/store.js'

let parent: string
let folder: string
const open: Store[] = []

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'sion-store-test-'))
  folder = join(parent, 'chain')
})

afterEach(async () => {
  for (const store of open.splice(0)) await store.close()
  rmSync(parent, { recursive: true })
})

function opened(): Store {
  const store = Store.open(folder)
  open.push(store)
  return store
}

async function reopened(): Promise<Store> {
  await open.pop()?.close()
  return opened()
}

const bytes = (...values: number[]) => Uint8Array.of(...values)
const id = (fill: number) => toHex(new Uint8Array(32).fill(fill))

function emptyPulse(number: number, more: Partial<PulseRecord> = {}): PulseRecord {
  return { number, header: bytes(number), certificate: bytes(9), transactions: [], objects: new Map(), expiring: [], ...more }
}

describe('the data folder', () => {
  it('is for its owner alone', async () => {
    opened()
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder, 'data.mdb')).mode & 0o777).toBe(0o600)
  })

  it('is held once: whoever comes second is told who has it', () => {
    opened()
    expect(() => Store.open(folder)).toThrow(expect.objectContaining({ code: 'data_folder_in_use', message: expect.stringContaining(`process ${process.pid}`) }))
  })

  it('is free again after a close, and after its owner is gone', async () => {
    opened()
    await reopened()
    await open.pop()?.close()
    const crashed = DataFolder.open(folder)
    crashed.transaction(() => crashed.table('meta').putSync(Buffer.from('owner'), Buffer.from(JSON.stringify({ pid: process.pid, stamp: 'an earlier boot' }))))
    expect(() => opened()).not.toThrow()
    // Only now: the end of the first one frees what by now is the second one's.
    await open.pop()?.close()
    await crashed.close().catch(() => {})
  })

  it('in a newer format is refused, and left as it is', async () => {
    const newer = DataFolder.open(folder)
    newer.transaction(() => newer.putMeta('format', Buffer.from('2')))
    await newer.close()
    for (let tries = 0; tries < 2; tries++) {
      expect(() => Store.open(folder)).toThrow(expect.objectContaining({ code: 'data_folder_newer', message: expect.stringMatching(/format 2.*format 1/) }))
    }
  })

  it('is not made out of a folder that holds other things', () => {
    writeFileSync(join(parent, 'thesis.txt'), 'mine')
    expect(() => Store.open(parent)).toThrow(expect.objectContaining({ code: 'data_folder_unusable', message: expect.stringContaining('thesis.txt') }))
  })

  it('is begun anew where a killed start left only a lock file', () => {
    writeFileSync(join(parent, 'lock.mdb'), '')
    folder = parent
    expect(() => opened()).not.toThrow()
  })

  it('that cannot be made is one clear line', () => {
    writeFileSync(join(parent, 'file'), '')
    expect(() => Store.open(join(parent, 'file', 'chain'))).toThrow(expect.objectContaining({ code: 'data_folder_unusable' }))
  })
})

describe('the store', () => {
  it('gives back the chain it was begun with', async () => {
    const { genesis, secrets } = newDevnet(2, 1_000)
    expect(opened().chain()).toBeUndefined()
    open[0]?.begin(genesis, secrets, new Map([[id(1), bytes(1)]]))
    const store = await reopened()
    expect(store.chain()).toEqual({ genesis, secrets })
    expect(store.object(id(1))).toEqual(bytes(1))
    expect(store.latest()).toBe(0)
  })

  it('shows a Pulse whole, and has it after reopening', async () => {
    opened().commit(
      emptyPulse(1, {
        transactions: [
          { digest: id(1), body: bytes(11), receipt: bytes(12) },
          { digest: id(2), body: bytes(21), receipt: bytes(22) },
        ],
        objects: new Map([[id(5), bytes(5)], [id(6), null]]),
        expiring: [{ id: id(5), validUntil: 2 }],
      }),
    )
    const store = await reopened()
    expect(store.latest()).toBe(1)
    expect(store.pulse(1)).toEqual({ header: bytes(1), certificate: bytes(9) })
    expect(store.placeOf(id(2))).toEqual({ pulse: 1, index: 1 })
    expect(store.body({ pulse: 1, index: 1 })).toEqual(bytes(21))
    expect(store.receiptsOf(1)).toEqual([bytes(12), bytes(22)])
    expect(store.executed()).toBe(2)
    expect([...store.objects()]).toEqual([[id(5), bytes(5)]])
  })

  it('refuses a Pulse that is not the next, and then has nothing of it', () => {
    const store = opened()
    store.commit(emptyPulse(1))
    for (const number of [1, 3]) {
      const record = emptyPulse(number, { transactions: [{ digest: id(7), body: bytes(1), receipt: bytes(1) }], objects: new Map([[id(7), bytes(7)]]) })
      expect(() => store.commit(record)).toThrow(expect.objectContaining({ code: 'not_the_next_pulse' }))
    }
    expect(store.latest()).toBe(1)
    expect(store.placeOf(id(7))).toBeUndefined()
    expect(store.object(id(7))).toBeUndefined()
  })

  it('lists a nonce for pruning in the Pulse after its last, until that Pulse is committed', () => {
    const store = opened()
    store.commit(emptyPulse(1, { expiring: [{ id: id(1), validUntil: 3 }, { id: id(2), validUntil: 4 }] }))
    expect(store.expiredIn(3)).toEqual([])
    expect(store.expiredIn(4)).toEqual([id(1)])
    store.commit(emptyPulse(2))
    store.commit(emptyPulse(3))
    store.commit(emptyPulse(4))
    expect(store.expiredIn(5)).toEqual([id(2)])
  })

  it('lets a validator vote for one header a number, also after reopening, and never for an earlier number', async () => {
    opened().recordVotes({ number: 5, headerHash: id(1) }, [0, 1], bytes(1))
    const store = await reopened()
    expect(() => store.recordVotes({ number: 5, headerHash: id(1) }, [0], bytes(1))).not.toThrow()
    for (const vote of [{ number: 5, headerHash: id(2) }, { number: 4, headerHash: id(3) }]) {
      expect(() => store.recordVotes(vote, [3, 1], bytes(2))).toThrow(expect.objectContaining({ code: 'double_vote' }))
    }
    expect(store.voteOf(3)).toBeUndefined()
    expect(store.proposal()).toEqual(bytes(1))
    store.recordVotes({ number: 6, headerHash: id(2) }, [1], bytes(2))
    expect(store.voteOf(1)).toEqual({ number: 6, headerHash: id(2) })
  })

  it('forgets a proposal, and with it its signatures, in the transaction that certifies it', () => {
    const store = opened()
    store.recordVotes({ number: 1, headerHash: id(1) }, [0], bytes(1))
    store.commit(emptyPulse(1))
    expect(store.proposal()).toBeUndefined()
  })

  it('drops certificates of long gone empty Pulses, and no others', () => {
    const store = opened()
    store.commit(emptyPulse(1))
    store.commit(emptyPulse(2, { transactions: [{ digest: id(1), body: bytes(1), receipt: bytes(1) }] }))
    for (let number = 3; number <= KEPT_EMPTY_PULSES + 2; number++) store.commit(emptyPulse(number))
    expect(store.pulse(1)).toEqual({ header: bytes(1), certificate: undefined })
    expect(store.pulse(2)?.certificate).toEqual(bytes(9))
    expect(store.pulse(3)?.certificate).toEqual(bytes(9))
  })
})
