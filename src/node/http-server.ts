import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { messageOf, SionError } from '../codec/index.js'

export interface Address {
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
}

/** An HTTP server that listens, and where. */
export interface ListeningServer {
  readonly address: Address
  close(): Promise<void>
}

/**
 * Serves `fetch` on `address`.
 * @throws SionError `address_in_use`, `cannot_listen`.
 */
export async function listen(fetch: (request: Request) => Response | Promise<Response>, address: Address): Promise<ListeningServer> {
  // It would replace the process's Request and Response, which are not only ours.
  const server = createAdaptorServer({ fetch, overrideGlobalObjects: false })
  if (!('keepAliveTimeout' in server)) throw new TypeError('expected an HTTP/1.1 server')
  // Clients keep connections for reuse; one that closes under a request that is on its way costs them a retry.
  server.keepAliveTimeout = 75_000
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(address.port, address.host, resolve)
    })
  } catch (cause) {
    throw cannotListen(address, cause)
  }
  return { address: { host: address.host, port: portOf(server) }, close: () => close(server) }
}

/** `host:port`, with brackets around an IPv6 address. */
export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new TypeError('expected a TCP address')
  return address.port
}

function cannotListen(address: Address, cause: unknown): SionError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRINUSE') {
    return new SionError('address_in_use', `${formatAddress(address)} is in use: is another node running there?`, { cause })
  }
  return new SionError('cannot_listen', `cannot listen on ${formatAddress(address)}: ${messageOf(cause)}`, { cause })
}
