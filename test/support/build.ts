import { execFileSync } from 'node:child_process'

/** Tests start real processes, and those run from dist: build it first, once. */
export default function build(): void {
  execFileSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' })
}
