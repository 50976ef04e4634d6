import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/manifest/fuzz.test.ts"],
    setupFiles: "test/setup.ts",
    // Of each of four formats.
    env: { FUZZ_CASES_EACH: "2500" },
    testTimeout: 300_000,
  },
});
