import { once } from 'node:events'
import { request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { formatAddress, listen, type ListeningServer } from '../../src/node/http-server.js'
import { isLoopback } from '../../src/node/index.js'

const servers: ListeningServer[] = []
const anywhere = { host: '127.0.0.1', port: 0 }

async function serve(fetch: Parameters<typeof listen>[0]): Promise<ListeningServer> {
  const server = await listen(fetch, anywhere)
  servers.push(server)
  return server
}

afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

describe('the HTTP server', () => {
  it('aborts the request of a client that goes away, so that nothing waits for it', async () => {
    let begun = (): void => {}
    const waiting = new Promise<void>((resolve) => (begun = resolve))
    let ended = (): void => {}
    const aborted = new Promise<void>((resolve) => (ended = resolve))
    const { address } = await serve(async (asked) => {
      begun()
      await once(asked.signal, 'abort')
      ended()
      return new Response()
    })
    const asked = request(`http://${formatAddress(address)}/`)
    asked.on('error', () => {})
    asked.end()
    await waiting
    asked.destroy()
    await aborted
  })

  it('leaves the process’s Request and Response as they are', async () => {
    const before = [globalThis.Request, globalThis.Response]
    await serve(() => new Response())
    expect([globalThis.Request, globalThis.Response]).toEqual(before)
  })

  it('says in one line what it cannot listen on', async () => {
    const { address } = await serve(() => new Response())
    await expect(listen(() => new Response(), address)).rejects.toMatchObject({ code: 'address_in_use', message: expect.stringContaining(`127.0.0.1:${address.port} is in use`) })
    await expect(listen(() => new Response(), { host: '192.0.2.1', port: 1 })).rejects.toMatchObject({ code: 'cannot_listen' })
  })

  it('closes at once, also under open requests', async () => {
    let begun = (): void => {}
    const waiting = new Promise<void>((resolve) => (begun = resolve))
    const { address, close } = await serve(() => {
      begun()
      return new Promise(() => {})
    })
    const asked = expect(fetch(`http://${formatAddress(address)}/`)).rejects.toThrow()
    await waiting
    await close()
    await asked
  })
})

it('only this machine reaches a loopback address', () => {
  for (const host of ['127.0.0.1', '127.8.9.10', '::1', 'localhost']) expect(isLoopback(host)).toBe(true)
  for (const host of ['0.0.0.0', '::', '10.0.0.1', '127.0.0.1.example.com', 'example.com']) expect(isLoopback(host)).toBe(false)
  expect(formatAddress({ host: '::1', port: 8730 })).toBe('[::1]:8730')
})
