import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A condition that is waited for may take its time on a loaded machine; one that holds ends the wait at once.
    expect: { poll: { timeout: 15_000 } },
    projects: [
      { extends: true, test: { name: 'unit', include: ['src/**/*.test.ts', 'test/fuzz/**/*.test.ts', 'test/contract/**/*.test.ts'] } },
      { extends: true, test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 120_000, fileParallelism: false } },
    ],
  },
});
