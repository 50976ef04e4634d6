import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    // Guards against what hangs, not measures: other checks may run beside these.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 100_000 } },
    maxWorkers: 2,
    setupFiles: "test/setup.ts",
    globalSetup: "test/e2e/leaked-key-tally.ts",
  },
});
