import { spawnSync } from 'node:child_process'

/** Tests start real processes, and those run from dist: build it first, once. */
export default function build(): void {
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' })
  if (status !== 0) throw new Error('no test ran, since the build failed: the compiler’s errors stand above')
}
