import { defineConfig } from "vitest/config";
import whole from "../vitest.config.js";

/** What needs a PostgreSQL server: the state in a database, workers, and moving a state. */
export default defineConfig({
  test: { ...whole.test, include: ["test/fleet/**/*.test.ts"], exclude: [], maxWorkers: 2 },
});
