import { defineConfig } from "vitest/config";

/** Clients of vendors that are too large to be installed with every checkout: npm run test:clients. */
export default defineConfig({
  test: { include: ["test/clients/**/*.test.ts"], testTimeout: 120_000 },
});
