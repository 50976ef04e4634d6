import { mergeConfig } from "vitest/config";
import whole from "../vitest.config.js";

/** What needs a PostgreSQL server: the state in a database, workers, and moving a state. */
const fleet = mergeConfig(whole, { test: { maxWorkers: 2 } });
fleet.test.include = ["test/fleet/**/*.test.ts"];
fleet.test.exclude = [];
export default fleet;
