// Compiles src to dist and carries along what the compiler does not: Lua scripts, the command's executable bit. Files
// whose source is gone are removed, and nothing else: whoever runs from dist meanwhile keeps running.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const src = join(root, 'src')
const dist = join(root, 'dist')

const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
// Errors go to stdout, one a line: they are the answer to whoever builds.
const compiled = spawnSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
if (compiled.status !== 0) {
  process.stderr.write('the build failed: the compiler says why above\n')
  process.exit(1)
}

for (const path of filesUnder(src)) {
  if (!path.endsWith('.lua')) continue
  const target = join(dist, relative(src, path))
  mkdirSync(dirname(target), { recursive: true })
  copyFileSync(path, target)
}
for (const path of filesUnder(dist)) {
  const source = join(src, relative(dist, path)).replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts')
  if (!existsSync(source)) rmSync(path)
}
const command = join(dist, 'cli', 'main.js')
if (existsSync(command)) chmodSync(command, 0o755)

function* filesUnder(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) yield* filesUnder(path)
    else yield path
  }
}
