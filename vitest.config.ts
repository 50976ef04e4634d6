import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // These need a Chromium: npm run test:browser.
    exclude: ["test/browser/**"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    maxWorkers: 2,
    globalSetup: "test/e2e/canary-tally.ts",
  },
});
