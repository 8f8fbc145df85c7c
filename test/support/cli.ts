import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface CliResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunningCli {
  readonly result: Promise<CliResult>
  /** Resolves with the match once stdout and stderr together match; rejects if the command ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  kill(signal: NodeJS.Signals): void
}

/** The built `sion` command under a `SION_HOME` of its own. Nothing of this process's SION variables reaches it. */
export class Cli {
  private constructor(
    readonly home: string,
    private readonly env: Record<string, string>,
  ) {}

  static async create(env: Record<string, string> = {}): Promise<Cli> {
    return new Cli(await mkdtemp(join(tmpdir(), 'sion-cli-')), env)
  }

  /** The same home with other variables. */
  with(env: Record<string, string>): Cli {
    return new Cli(this.home, { ...this.env, ...env })
  }

  async remove(): Promise<void> {
    await rm(this.home, { recursive: true, force: true })
  }

  run(...args: string[]): Promise<CliResult> {
    return this.start(...args).result
  }

  start(...args: string[]): RunningCli {
    const child = spawn(process.execPath, [main, ...args], {
      env: { PATH: process.env['PATH'], SION_HOME: this.home, ...this.env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let stdout = ''
    let stderr = ''
    let look = (): void => {}
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      look()
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      look()
    })
    const result = new Promise<CliResult>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
    })
    return {
      result,
      kill: (signal) => void child.kill(signal),
      until: (pattern) =>
        new Promise((resolve, reject) => {
          look = () => {
            const match = pattern.exec(`${stdout}\n${stderr}`)
            if (match === null) return
            // A server's log grows: it is not searched again for nobody.
            look = () => {}
            resolve(match)
          }
          look()
          result.then((ended) => reject(new Error(`ended before ${pattern}: ${JSON.stringify(ended)}`)), reject)
        }),
    }
  }
}
