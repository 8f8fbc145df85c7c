import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/build.ts'],
    // Real ledgers, Redis and processes: slow is a machine under load, not a failure.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    retry: 0,
    // Worker processes, not threads: LMDB and signals behave as they do for a user.
    pool: 'forks',
    maxWorkers: 2,
  },
})
