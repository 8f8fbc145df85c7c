import { readFileSync } from 'node:fs'

/**
 * What tells a living process from a later one with the same id: when it started, and in which boot of the machine.
 * Undefined where no process has this id. Outside Linux there is only the id.
 */
export function processStamp(pid: number): string | undefined {
  if (!isAlive(pid)) return undefined
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name stands in parentheses and may hold spaces: the fields are counted behind it. The start time is field 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie holds nothing any more; it only waits for its parent.
    if (fields[0] === 'Z') return undefined
    return `${boot} ${fields[19]}`
  } catch {
    return `pid ${pid}`
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives, and is another user's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
