import { defineConfig } from "vitest/config";
import { fuzzTag } from "../fuzz/amount.js";

/** The tests that the code is mutated against: those of the rooms themselves, which are quick. */
export default defineConfig({
  test: {
    include: ["test/core/**/*.test.ts", "test/plan/**/*.test.ts", "test/archive/**/*.test.ts"],
    // Stryker runs tests in a thread, which cannot set the time zone of its process. Large sheets only repeat, for seconds a
    // change, what small ones show.
    exclude: ["test/core/local-time.test.ts", "test/plan/large.test.ts"],
    tags: [fuzzTag],
    setupFiles: "test/setup.ts",
    env: { TZ: "UTC" },
    isolate: false,
  },
});
