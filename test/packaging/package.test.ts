import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAst } from 'vite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string
  exports: Record<string, unknown>
  dependencies: Record<string, string>
}
const entries = Object.keys(manifest.exports)
  .filter((entry) => entry !== './package.json')
  .map((entry) => `sion-x402${entry.slice(1)}`)

/** Entry points that edge runtimes load: nothing of Node's may be reached from them. */
const PORTABLE = ['.', './fetch', './light', './sdk', './facilitator', './wire', './stores/memory', './hono']

let project: string
let installed: string

/** An empty project with the packed package in it and, in place of a registry, the dependencies of this checkout. */
beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'sion-package-'))
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', project], { cwd: root, encoding: 'utf8' })
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  const modules = join(project, 'node_modules')
  mkdirSync(modules)
  execFileSync('tar', ['-xzf', join(project, filename), '-C', modules])
  installed = join(modules, 'sion-x402')
  execFileSync('mv', [join(modules, 'package'), installed])
  // Only what a user would have: dependencies, the one peer, and a compiler with Node's types.
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!name.startsWith('.') && name !== 'sion-x402') symlinkSync(join(root, 'node_modules', name), join(modules, name))
  }
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'consumer', private: true, type: 'module' }))
  cpSync(join(root, 'test', 'packaging', 'consumer'), join(project, 'src'), { recursive: true })
})
afterAll(() => rmSync(project, { recursive: true, force: true }))

describe('the packed package', () => {
  it('holds what was built, its sources, the documents and the examples, and nothing else', () => {
    const top = readdirSync(installed).sort()
    expect(top).toEqual(['README.md', 'dist', 'docs', 'examples', 'package.json', 'src'])
    expect(existsSync(join(installed, 'dist', 'x402', 'stores', 'lua', 'claim.lua'))).toBe(true)
    // What is not built from a source that there is would be a leftover of another version.
    const strays = filesUnder(join(installed, 'dist'))
      .map((path) => relative(join(installed, 'dist'), path))
      .filter((path) => !existsSync(join(installed, 'src', path.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts'))))
    expect(strays).toEqual([])
  })

  it('can be imported by every name that it exports, and by no other', () => {
    for (const entry of entries) {
      const code = `const m = await import(${JSON.stringify(entry)}); if (Object.keys(m).length === 0) process.exit(1)`
      expect(run(['--input-type=module', '-e', code]), entry).toMatchObject({ status: 0, stderr: '' })
    }
    const hidden = run(['--input-type=module', '-e', 'await import("sion-x402/dist/x402/quote.js")'])
    expect(hidden.stderr).toContain('ERR_PACKAGE_PATH_NOT_EXPORTED')
  })

  it.each([
    ['Node', { types: ['node'], lib: ['es2023'], customConditions: [] }],
    ['an edge runtime', { types: [], lib: ['es2023', 'dom', 'dom.iterable'], customConditions: ['worker'], files: ['src/buyer.ts'] }],
  ])('has types for a strict compiler, on %s', (_, { files, ...compilerOptions }: { files?: string[]; types: string[]; lib: string[] }) => {
    const strict = {
      target: 'es2023',
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      verbatimModuleSyntax: true,
      noEmit: true,
      skipLibCheck: true,
    }
    const config = { compilerOptions: { ...strict, ...compilerOptions }, ...(files === undefined ? { include: ['src'] } : { files }) }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
    const checked = run([join(project, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.json'])
    expect(checked).toMatchObject({ status: 0, stdout: '', stderr: '' })
  })

  it('has a command that says its version', () => {
    const { bin } = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8')) as { bin: Record<string, string> }
    const version = execFileSync(join(installed, bin['sion'] ?? ''), ['--version'], { cwd: project, encoding: 'utf8' })
    expect(version).toBe(`${manifest.version}\n`)
  })

  it('reaches nothing of Node’s from what an edge runtime imports', () => {
    for (const entry of PORTABLE) {
      const reached = importsFrom(defaultOf(manifest.exports[entry]))
      const ofNode = [...reached].filter((name) => name.startsWith('node:') || builtinModules.includes(name))
      expect(ofNode, entry).toEqual([])
    }
  })

  it('imports only packages that it declares, and none of them for buyers but what signs and encodes', () => {
    const declared = new Set([...Object.keys(manifest.dependencies), 'express'])
    for (const entry of Object.values(manifest.exports)) {
      if (typeof entry === 'string') continue
      for (const name of packagesIn(importsFrom(defaultOf(entry)))) expect(declared, `${name} of ${defaultOf(entry)}`).toContain(name)
    }
    expect(packagesIn(importsFrom('./dist/index.js'))).toEqual(['@noble/hashes', '@noble/post-quantum', 'micro-packed'])
  })
})

function run(args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: project, encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** What a runtime that is not Node gets of an entry. */
function defaultOf(entry: unknown): string {
  if (typeof entry === 'string') return entry
  if (typeof entry === 'object' && entry !== null && 'default' in entry) return defaultOf(entry.default)
  throw new TypeError('an entry without a default')
}

/** Everything that a built file imports statically, directly or not; the package's own files are followed. */
function importsFrom(file: string): Set<string> {
  const seen = new Set<string>()
  const outside = new Set<string>()
  const follow = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    for (const statement of parseAst(readFileSync(path, 'utf8')).body) {
      const name = 'source' in statement ? statement.source?.value : undefined
      if (name === undefined) continue
      if (name.startsWith('.')) follow(join(dirname(path), name))
      else outside.add(name)
    }
  }
  follow(join(installed, file))
  return outside
}

function packagesIn(names: Set<string>): string[] {
  const packages = [...names].filter((name) => !name.startsWith('node:')).map((name) => name.split('/').slice(0, name.startsWith('@') ? 2 : 1).join('/'))
  return [...new Set(packages)].sort()
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}
