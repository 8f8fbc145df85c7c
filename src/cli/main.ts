#!/usr/bin/env node
import { CommanderError } from 'commander'
import { EXIT, exitCodeOf } from './exit.js'
import { oneLine, printError, progress, surviveClosedPipes } from './output.js'
import { buildProgram } from './program.js'

surviveClosedPipes()
forgetEmptyVariables()
process.exitCode = await main(process.argv)
// What a failed command left open (a connection that is tried again and again) must not keep it from ending.
if (process.exitCode !== EXIT.ok) process.stdout.write('', () => process.exit())

/** Runs one command line. An action may set `process.exitCode` itself, where the outcome is no error. */
async function main(argv: string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(argv)
    return Number(process.exitCode ?? EXIT.ok)
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      printError(error)
      return exitCodeOf(error)
    }
    // Commander throws for --help and --version too, having printed them; a bare `sion` has printed its help on stderr.
    if (error.exitCode === 0) return EXIT.ok
    if (error.code !== 'commander.help') progress(oneLine(error.message))
    return EXIT.input
  }
}

/** `SION_NODE= sion status` means: not set. */
function forgetEmptyVariables(): void {
  for (const name of ['SION_NODE', 'SION_CHAIN', 'SION_HOME']) {
    if (process.env[name] === '') delete process.env[name]
  }
}
