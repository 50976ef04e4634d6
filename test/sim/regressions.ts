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

export interface KeptRegression {
  name: string;
  regression: Regression;
}

/** Of each promise, the scenario with the fewest items. */
export function shortestOfEach(kept: readonly KeptRegression[]): KeptRegression[] {
  const items = ({ regression }: KeptRegression) => regression.scenario.items.length;
  const shortest = new Map<string, KeptRegression>();
  for (const one of kept.toSorted((a, b) => items(b) - items(a))) shortest.set(one.regression.promise, one);
  return [...shortest.values()];
}

export function loadRegressions(folder: string): KeptRegression[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .toSorted()
    .map((name) => ({
      name,
      regression: JSON.parse(readFileSync(join(folder, name), "utf8")) as Regression,
    }));
}
