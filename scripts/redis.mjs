// Tests of the Redis stores run against a real redis-server, which they start themselves on a free port.
import { spawnSync } from 'node:child_process'

/** Makes sure that redis-server can be started: installs it where that can be done, else says how and ends. */
export function requireRedis() {
  if (isThere()) return
  const canInstall = process.getuid?.() === 0 && spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0
  if (canInstall && install() && isThere()) return
  process.stderr.write(
    'redis-server is not installed, and the tests need it: install it (Debian, Ubuntu: sudo apt-get install redis-server; macOS: brew install redis) and run this again\n',
  )
  process.exit(1)
}

function isThere() {
  return spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0
}

function install() {
  process.stdout.write('installing redis-server\n')
  return apt('update') && apt('install', '-y', '--no-install-recommends', 'redis-server')
}

function apt(...args) {
  // RUNLEVEL=1 keeps the package from starting a server of its own: the tests start theirs.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const { status } = spawnSync('apt-get', ['-q', ...args], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  return status === 0
}
