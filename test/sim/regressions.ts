import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Scenario } from "./scenario.js";

/** Scenarios that once broke a promise, small and whole, so that they stay the same when the workload changes. */
export interface Regression {
  /** The promise that was broken, and how. */
  promise: string;
  message: string;
  scenario: Scenario;
}

export function saveRegression(folder: string, regression: Regression): string {
  mkdirSync(folder, { recursive: true });
  const name = `${regression.promise.toLowerCase()}-seed-${regression.scenario.seed}.json`;
  writeFileSync(join(folder, name), `${JSON.stringify(regression, null, 2)}\n`);
  return name;
}

export function loadRegressions(folder: string): { name: string; regression: Regression }[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .map((name) => ({
      name,
      regression: JSON.parse(readFileSync(join(folder, name), "utf8")) as Regression,
    }));
}
