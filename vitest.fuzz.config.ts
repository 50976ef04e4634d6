import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: this is how vitest reads it.
export default defineConfig({
  test: {
    include: ["test/manifest/fuzz.test.ts"],
    setupFiles: "test/setup.ts",
    // Of each of four formats.
    env: { FUZZ_CASES_EACH: "2500" },
    testTimeout: 300_000,
  },
});
