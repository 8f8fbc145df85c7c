import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const script = new URL('../../scripts/redis.mjs', import.meta.url)

let bin: string
beforeEach(() => {
  bin = mkdtempSync(join(tmpdir(), 'sion-bin-'))
  symlinkSync(process.execPath, join(bin, 'node'))
})
afterEach(() => rmSync(bin, { recursive: true, force: true }))

/** Runs the check where `bin` is all there is, as a user with this id. */
function requireRedis(userId: number): { status: number | null; stdout: string; stderr: string } {
  const code = `process.getuid = () => ${userId}; (await import(${JSON.stringify(script.href)})).requireRedis()`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { env: { PATH: bin }, encoding: 'utf8' })
  return { status, stdout, stderr }
}

function place(name: string, lines: string[]): void {
  writeFileSync(join(bin, name), ['#!/bin/sh', ...lines, ''].join('\n'))
  chmodSync(join(bin, name), 0o755)
}

/** An apt-get that notes what it is asked, and puts a redis-server there when it is asked to install one. */
function placeApt(): void {
  const server = join(bin, 'redis-server')
  place('apt-get', [
    `echo "$@" >> ${join(bin, 'asked')}`,
    `case "$*" in *redis-server) printf '#!/bin/sh\\n' > ${server}; /bin/chmod +x ${server};; esac`,
  ])
}

describe('npm test, where redis-server is', () => {
  it('there: says nothing', () => {
    place('redis-server', ['exit 0'])
    expect(requireRedis(1000)).toEqual({ status: 0, stdout: '', stderr: '' })
  })

  it('not there, run as root: installs it, lists first', () => {
    placeApt()
    const { status, stdout, stderr } = requireRedis(0)
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: 'installing redis-server\n', stderr: '' })
    const asked = spawnSync('cat', [join(bin, 'asked')], { encoding: 'utf8' }).stdout.trim().split('\n')
    expect(asked).toEqual(['--version', '-q update', '-q install -y --no-install-recommends redis-server'])
  })

  it.each([
    ['run as somebody else', 1000, true],
    ['and no apt either', 0, false],
  ])('not there, %s: says in one line what to install, and fails', (_, userId, withApt) => {
    if (withApt) placeApt()
    const { status, stdout, stderr } = requireRedis(userId)
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' })
    expect(stderr).toMatch(/^redis-server is not installed, and the tests need it: install it \(.*sudo apt-get install redis-server.*\) and run this again\n$/)
  })
})

