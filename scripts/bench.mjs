// `node scripts/bench.mjs bench/NAME.ts [arguments]`: runs a bench, which is TypeScript, with plain node. What it imports
// from src is taken from dist, so that the code which is measured is the code that is shipped; the bench itself and what
// it borrows from test/support are compiled to a file that is gone afterwards. BENCH_NODE_FLAGS are node's own flags, such
// as --cpu-prof.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'vite'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const [name, ...args] = process.argv.slice(2)
if (name === undefined || !existsSync(name)) {
  process.stderr.write(`usage: node scripts/bench.mjs bench/NAME.ts [arguments]${name === undefined ? '' : `; there is no ${name}`}\n`)
  process.exit(2)
}
const built = spawnSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { stdio: 'inherit' })
if (built.status !== 0) process.exit(1)

const entry = resolve(name)
const folder = join(root, 'node_modules', '.cache', 'sion-bench')
const file = `${basename(name, '.ts')}-${process.pid}.mjs`
mkdirSync(folder, { recursive: true })
await build({
  root,
  configFile: false,
  logLevel: 'warn',
  plugins: [shippedCode(), ownAddress()],
  build: {
    ssr: entry,
    outDir: folder,
    emptyOutDir: false,
    target: 'node20',
    minify: false,
    rolldownOptions: { output: { entryFileNames: file } },
  },
})

const path = join(folder, file)
const flags = (process.env.BENCH_NODE_FLAGS ?? '--expose-gc').split(' ')
const bench = spawn(process.execPath, [...flags, path, ...args], { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => bench.kill(signal))
bench.once('close', (code) => {
  rmSync(path, { force: true })
  process.exit(code ?? 1)
})

/** `../src/light/index.js` becomes that file in dist. */
function shippedCode() {
  const src = join(root, 'src')
  return {
    name: 'shipped-code',
    enforce: 'pre',
    resolveId(id, importer) {
      if (importer === undefined || !id.startsWith('.')) return null
      const inSrc = relative(src, resolve(dirname(importer), id))
      if (inSrc.startsWith('..')) return null
      return { id: pathToFileURL(join(root, 'dist', inSrc)).href, external: true }
    },
  }
}

/** A bench finds its neighbours where it was written, not where it was compiled to. */
function ownAddress() {
  return {
    name: 'own-address',
    enforce: 'pre',
    transform(code, id) {
      if (!code.includes('import.meta.url')) return null
      return { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null }
    },
  }
}
