// `npm run demo`: a ledger, a paid API and a buyer on this machine, shown to a person. Scenes play in the order of
// `scenes`; each gets the stage (what is printed, what must be closed) and the cast (who has been started so far).
import { existsSync } from 'node:fs'

if (!existsSync(new URL('../dist/index.js', import.meta.url))) {
  process.stderr.write('error: nothing is built yet; run: npm ci\n')
  process.exit(1)
}
const { Stage } = await import('./demo/stage.mjs')
const scenes = [
  await import('./demo/scenes/ledger.mjs'),
  await import('./demo/scenes/quote.mjs'),
  await import('./demo/scenes/purchase.mjs'),
  await import('./demo/scenes/over-cap.mjs'),
  await import('./demo/scenes/replay.mjs'),
  await import('./demo/scenes/balance.mjs'),
]

const TIME_LIMIT_SECONDS = 55
const CLOSE_LIMIT_SECONDS = 4

const stage = new Stage()
const started = performance.now()
const code = await Promise.race([play(), stage.interrupted(), tooSlow()])
// Closing waits for what is under way; whatever hangs there is not waited for.
await Promise.race([stage.close(), new Promise((resolve) => setTimeout(resolve, CLOSE_LIMIT_SECONDS * 1_000))])
process.exit(code)

async function play() {
  const cast = {}
  try {
    stage.title('sion-x402: selling and buying an HTTP request, on a ledger of this machine’s own')
    for (const scene of scenes) {
      stage.scene(scene.title)
      await scene.play(stage, cast)
    }
    stage.end(`All of it in ${((performance.now() - started) / 1_000).toFixed(1)} s. README.md shows how to sell and buy from your own code.`)
    return 0
  } catch (error) {
    stage.failed(error)
    return 1
  }
}

function tooSlow() {
  return new Promise((resolve) => {
    setTimeout(() => {
      stage.failed(new Error(`not done after ${TIME_LIMIT_SECONDS} s`))
      resolve(1)
    }, TIME_LIMIT_SECONDS * 1_000).unref()
  })
}
