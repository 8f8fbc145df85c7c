import { spawn, type ChildProcess } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { root, type Fence } from './markdown.js'
import { Transcript } from './transcript.js'

/** Ports that documents name: everything that listens does so on one of these by default, or in a snippet. */
const PORTS = ['8730', '8402', '8403', '8405']

/** Commands that listen, and the port they take where they are not told another. */
const LISTENING = new Map([
  ['sion devnet', '8730'],
  ['sion x402 serve', '8402'],
  ['sion facilitator', '8405'],
])

/** How long a server may take to print what the document shows. */
const START_LIMIT_MS = 30_000

/**
 * Follows one document, block by block, as its reader would: in a folder of its own that can import `sion-x402`, with a
 * `sion` command, a home of its own, and ports that nothing else uses.
 */
export class Session {
  readonly #transcript: Transcript
  readonly #servers: ChildProcess[] = []
  #status = 0

  private constructor(
    readonly folder: string,
    private readonly ports: ReadonlyMap<string, string>,
    private readonly env: Record<string, string>,
  ) {
    this.#transcript = new Transcript(ports)
  }

  static async open(): Promise<Session> {
    const folder = await mkdtemp(join(tmpdir(), 'sion-docs-'))
    const ports = await freePorts(PORTS)
    const modules = join(folder, 'node_modules')
    await mkdir(join(modules, '@hono'), { recursive: true })
    await mkdir(join(folder, 'bin'))
    await symlink(root, join(modules, 'sion-x402'))
    for (const name of ['express', 'hono', '@hono/node-server', 'ioredis']) await symlink(join(root, 'node_modules', name), join(modules, name))
    await symlink(join(root, 'dist', 'cli', 'main.js'), join(folder, 'bin', 'sion'))
    const env = {
      PATH: [join(folder, 'bin'), process.env['PATH']].join(delimiter),
      HOME: folder,
      SION_NODE: `http://127.0.0.1:${ports.get('8730')}`,
    }
    return new Session(folder, ports, env)
  }

  /** @throws Error saying what the document shows and what was printed. */
  async follow(fence: Fence): Promise<void> {
    switch (fence.language) {
      case 'js':
        await writeFile(join(this.folder, fence.role), this.#transcript.toRun(fence.text))
        return
      case 'console':
        if (fence.role === 'background') await this.#startServer(fence.text)
        else await this.#runAll(commandsOf(fence.text))
    }
  }

  async close(): Promise<void> {
    for (const server of this.#servers.reverse()) await end(server)
    await rm(this.folder, { recursive: true, force: true })
  }

  async #runAll(commands: Command[]): Promise<void> {
    for (const [i, command] of commands.entries()) {
      await this.#run(command)
      if (this.#status !== 0 && commands[i + 1]?.line !== 'echo $?') throw new Error(`$ ${command.line}\nfailed with ${this.#status}`)
    }
  }

  async #run({ line, output }: Command): Promise<void> {
    const variable = /^export (\w+)=(\S*)$/.exec(line)
    if (variable?.[1] !== undefined) {
      this.env[variable[1]] = this.#transcript.toRun(variable[2] ?? '')
      return
    }
    const before = this.#status
    const child = this.#spawn(`(exit ${before}); { ${this.#command(line)}\n} 2>&1`)
    let printed = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (printed += text))
    const [code] = (await once(child, 'close')) as [number | null]
    this.#status = code ?? 1
    const problem = this.#transcript.compare(output, this.#readable(printed))
    if (problem !== undefined) throw new Error(`$ ${line}\n${problem}\nAll of it:\n${printed}`)
  }

  async #startServer(text: string): Promise<void> {
    const [command] = commandsOf(text)
    if (command === undefined) throw new Error('a background block without a command')
    const child = this.#spawn(`exec ${this.#command(command.line)} 2>&1`)
    this.#servers.push(child)
    let printed = ''
    let problem: string | undefined = 'nothing was printed'
    await new Promise<void>((resolve, reject) => {
      const give = (why: string): void => reject(new Error(`$ ${command.line}\n${why}\n${problem}\nAll of it:\n${printed}`))
      const limit = setTimeout(() => give(`not shown within ${START_LIMIT_MS} ms`), START_LIMIT_MS)
      child.stdout?.setEncoding('utf8').on('data', (more: string) => {
        printed += more
        problem = this.#transcript.compare(command.output, this.#readable(printed))
        if (problem !== undefined) return
        clearTimeout(limit)
        resolve()
      })
      child.once('close', (code) => {
        clearTimeout(limit)
        give(`ended with ${code}`)
      })
    })
  }

  /** Where a command would listen on its default port, it gets the port that stands for it here. */
  #command(line: string): string {
    let command = this.#transcript.toRun(line)
    for (const [start, port] of LISTENING) {
      if (!command.startsWith(start) || command.includes('--listen')) continue
      command = command.replace(start, `${start} --listen 127.0.0.1:${this.ports.get(port)}`)
    }
    return command
  }

  /** As the document's reader would see it, who has the default ports and a home of a shorter name. */
  #readable(printed: string): string {
    return printed
      .replaceAll(` --node ${this.env['SION_NODE']}`, '')
      .replaceAll(join(this.folder, '.sion'), '~/.sion')
      .replace(/\n$/, '')
  }

  #spawn(command: string): ChildProcess {
    // A group of its own, so that ending it ends whatever the shell started.
    return spawn('/bin/sh', ['-c', command], { cwd: this.folder, env: this.env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] })
  }
}

export interface Command {
  readonly line: string
  /** What is printed after it. Where it fails, `echo $?` comes next. */
  readonly output: string
}

/** The commands of a console block: `$ ` begins one, `> ` goes on with it, other lines are printed. */
export function commandsOf(text: string): Command[] {
  const commands: { line: string; output: string[] }[] = []
  for (const line of text.split('\n')) {
    const current = commands.at(-1)
    if (line.startsWith('$ ')) commands.push({ line: line.slice(2), output: [] })
    else if (current === undefined) throw new Error(`a console block begins with "$ ", not with ${line}`)
    else if (line.startsWith('> ') && current.output.length === 0) current.line += `\n${line.slice(2)}`
    else current.output.push(line)
  }
  return commands.map(({ line, output }) => ({ line, output: output.join('\n') }))
}

async function end(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null || server.pid === undefined) return
  const closed = once(server, 'close')
  process.kill(-server.pid, 'SIGTERM')
  await closed
}

/** Below the ports that systems give to outgoing connections, one of which would sooner or later have taken ours. */
const LOWEST_PORT = 12_000
const HIGHEST_PORT = 32_000

async function freePorts(names: readonly string[]): Promise<Map<string, string>> {
  const ports = new Map<string, string>()
  while (ports.size < names.length) {
    const port = randomInt(LOWEST_PORT, HIGHEST_PORT)
    if (![...ports.values()].includes(String(port)) && (await isFree(port))) ports.set(names[ports.size] ?? '', String(port))
  }
  return ports
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return true
  } catch {
    return false
  } finally {
    server.close()
  }
}
