import { defineConfig } from "vitest/config";
import whole from "../vitest.config.js";

/** Left out of the short form that `.ci/run` runs: `npm run torture:fleet` and the simulation have the same in many more ways. */
const longTag = { name: "long", description: "left out of the short form" };

/** What needs a PostgreSQL server: the state in a database, workers, and moving a state. */
export default defineConfig({
  test: {
    ...whole.test,
    include: ["test/fleet/**/*.test.ts"],
    exclude: [],
    tags: [...(whole.test?.tags ?? []), longTag],
    maxWorkers: 2,
  },
});
