import { defineConfig } from "vitest/config";

// biome-ignore lint/style/noDefaultExport: this is how vitest reads it.
export default defineConfig({
  test: {
    include: ["test/browser/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    maxWorkers: 1,
  },
});
