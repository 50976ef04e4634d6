import { defineConfig } from "vitest/config";
import { fuzzTag } from "./amount.js";

export default defineConfig({
  test: {
    include: [
      "test/fuzz/parsers.test.ts",
      "test/upkeep/archive/verify.test.ts",
      "test/manifest/formats/workbook.test.ts",
      "test/manifest/fuzz.test.ts",
      "test/plan/large.test.ts",
      "test/plan/names.test.ts",
      "test/plan/saved-plan.test.ts",
      "test/report/live-view.test.ts",
      "test/sandbox/fuzz.test.ts",
      "test/schedule/year.test.ts",
      "test/store/sqlite.test.ts",
      "test/stories/stories.test.ts",
    ],
    tags: [fuzzTag],
    setupFiles: "test/setup.ts",
    globalSetup: "test/e2e/leaked-key-tally.ts",
    env: { FUZZ: "1" },
    testTimeout: 300_000,
    // Vitest would leave one of two cores to itself.
    maxWorkers: 2,
    isolate: false,
  },
});
