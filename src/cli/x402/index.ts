import { Command } from 'commander'
import { fetchCommand } from './fetch.js'
import { serveCommand } from './serve.js'

/** `sion x402 …` */
export function x402Command(): Command {
  return new Command('x402')
    .description('Sell an HTTP resource, or buy one, with x402 (HTTP 402 Payment Required)')
    .addCommand(serveCommand())
    .addCommand(fetchCommand())
}
