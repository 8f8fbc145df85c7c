import { spawn } from 'node:child_process'

export interface Child {
  readonly pid: number
  /** Resolves with the match once stdout matches; rejects if the process ends before. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  /** Exit code or signal, and all that it printed. */
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>
  kill(signal: NodeJS.Signals): void
}

/** A Node script as a process of its own. End it, always. */
export function startScript(path: string, args: readonly string[], env: Readonly<Record<string, string>>): Child {
  const child = spawn(process.execPath, [path, ...args], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  let look = (): void => {}
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    look()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ended = new Promise<Awaited<Child['ended']>>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return {
    pid: child.pid ?? -1,
    ended,
    kill: (signal) => void child.kill(signal),
    until: (pattern) =>
      new Promise((resolve, reject) => {
        look = () => {
          const match = pattern.exec(stdout)
          if (match === null) return
          look = () => {}
          resolve(match)
        }
        look()
        ended.then((end) => reject(new Error(`ended before ${pattern}: ${JSON.stringify(end)}`)), reject)
      }),
  }
}
