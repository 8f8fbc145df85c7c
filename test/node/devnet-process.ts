import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Api } from './support.js'

const command = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** `sion devnet` as a process of its own. End it, always. */
export class DevnetProcess {
  #stdout = ''
  #stderr = ''
  readonly #child: ChildProcess
  readonly ended: Promise<Ended>

  constructor(args: readonly string[]) {
    const child = spawn(process.execPath, [command, 'devnet', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.#stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text))
    this.ended = once(child, 'close').then(() => ({ code: child.exitCode, signal: child.signalCode, stdout: this.#stdout, stderr: this.#stderr }))
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  /** Its API, once it says where that is. */
  async api(): Promise<Api> {
    for (;;) {
      const url = /API +(\S+)/.exec(this.#stdout)?.[1]
      const chain = /export SION_CHAIN=([0-9a-f]{64})\n/.exec(this.#stdout)?.[1]
      if (url !== undefined && chain !== undefined) return new Api(url, chain)
      const next = await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), this.ended])
      if (!Array.isArray(next)) throw new Error(`the devnet ended (${next.code ?? next.signal}): ${next.stderr}`)
    }
  }

  end(signal: NodeJS.Signals): Promise<Ended> {
    this.#child.kill(signal)
    return this.ended
  }
}
