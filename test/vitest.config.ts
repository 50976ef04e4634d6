import { defineConfig } from "vitest/config";
import { fuzzTag } from "./fuzz/amount.js";

export default defineConfig({
  // The examples import the package by its name.
  resolve: { alias: { bulkgen: new URL("../src/index.ts", import.meta.url).pathname } },
  test: {
    include: ["test/**/*.test.ts"],
    tags: [fuzzTag],
    // These need a Chromium, a PostgreSQL server, or a large package: npm run test:browser, test:fleet, test:clients.
    exclude: ["test/browser/**", "test/fleet/**", "test/clients/**"],
    // A guard against what hangs, not a measure: a busy machine takes its time.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // People read local times; tests compare them.
    env: { TZ: "UTC" },
    // One more than the least number of cores: some tests wait for processes, but each worker loads all modules.
    maxWorkers: 3,
    // Most of what tests make is soon garbage: a larger nursery, cleared by one thread, takes a twentieth of their time less.
    execArgv: ["--min-semi-space-size=32", "--max-semi-space-size=64", "--single-threaded-gc"],
    // Nothing of ours lives in globals, so that a worker can keep its modules from file to file.
    isolate: false,
    setupFiles: "test/setup.ts",
    globalSetup: "test/e2e/leaked-key-tally.ts",
  },
});
