/** The paying client with what it keeps on disk: Node only. */
export * from './index.js'
export { fileAttempts } from './attempt-files.js'
