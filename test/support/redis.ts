import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Redis } from 'ioredis'

/** A redis-server of the test's own, on loopback, in a folder of its own. */
export interface RedisServer {
  readonly port: number
  readonly url: string
  /** As `kill -9`; what was acknowledged is in the append-only file. */
  kill(): Promise<void>
  /** On the same port and folder; resolves when it accepts commands. */
  restart(): Promise<void>
  /** Keeps it from running, its connections open. */
  freeze(): void
  thaw(): void
  /** Ends it and removes its folder. */
  stop(): Promise<void>
}

/** @param settings further `redis-server` settings, as on its command line. */
export async function startRedis(settings: readonly string[] = []): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-'))
  const port = await freePort()
  let child = await spawnRedis(port, folder, settings)
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    kill: () => end(child, 'SIGKILL'),
    async restart() {
      child = await spawnRedis(port, folder, settings)
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    async stop() {
      child.kill('SIGCONT')
      await end(child, 'SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** Three masters on loopback that share the slots. */
export async function startRedisCluster(): Promise<{ urls: string[]; stop(): Promise<void> }> {
  const busPorts: number[] = []
  const servers: RedisServer[] = []
  for (let node = 0; node < 3; node++) {
    const bus = await freePort()
    busPorts.push(bus)
    servers.push(await startRedis(['--cluster-enabled', 'yes', '--cluster-port', String(bus), '--cluster-node-timeout', '2000']))
  }
  const clients = servers.map(({ port }) => new Redis({ port, host: '127.0.0.1' }))
  const edges = [0, 5461, 10_923, 16_384]
  for (const [node, client] of clients.entries()) {
    await client.call('CLUSTER', 'SET-CONFIG-EPOCH', String(node + 1))
    await client.call('CLUSTER', 'ADDSLOTSRANGE', String(edges[node]!), String(edges[node + 1]! - 1))
  }
  for (const [node, { port }] of servers.entries()) {
    if (node > 0) await clients[0]!.call('CLUSTER', 'MEET', '127.0.0.1', String(port), String(busPorts[node]!))
  }
  for (const client of clients) await until(async () => isWhole(String(await client.call('CLUSTER', 'INFO'))))
  for (const client of clients) client.disconnect()
  return {
    urls: servers.map(({ url }) => url),
    async stop() {
      await Promise.all(servers.map((server) => server.stop()))
    },
  }
}

function isWhole(info: string): boolean {
  return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:3') && info.includes('cluster_size:3')
}

/** Polls: gossip among nodes tells nobody when it is done. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) {
    await new Promise((resolve) => {
      setTimeout(resolve, 50)
    })
  }
}

async function spawnRedis(port: number, folder: string, settings: readonly string[]): Promise<ChildProcess> {
  const args = ['--bind', '127.0.0.1', '--port', String(port), '--dir', folder, '--save', '', ...settings]
  const child = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const lines = createInterface({ input: child.stdout })
  const log: string[] = []
  for await (const line of lines) {
    log.push(line)
    if (line.includes('Ready to accept connections')) {
      child.stdout.resume()
      return child
    }
  }
  throw new Error(`redis-server did not start:\n${log.join('\n')}`)
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

async function freePort(): Promise<number> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
