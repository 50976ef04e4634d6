import { coverageTable } from "./coverage.js";
import type { Regression } from "./regressions.js";
import type { FaultKind } from "./scenario.js";
import { shrink } from "./shrink.js";
import { simulate } from "./simulate.js";
import { scenarioOf } from "./workload.js";

export interface CampaignOptions {
  /** First seed. */
  first: number;
  count: number;
  days: number;
  /** Milliseconds after which no further seed is begun. */
  msMax: number;
}

/** Failing seeds that are made smaller; more of them are counted only. */
const shrunkMax = 12;

/** Runs many seeds, and tells what they reached and which of them broke a promise. */
export async function campaign(options: CampaignOptions): Promise<{ broken: Regression[]; lines: string[] }> {
  const { first, count, days, msMax } = options;
  const faults = new Map<FaultKind, number>();
  const reached = new Map<string, number>();
  const failures: { seed: number; promise: string; message: string }[] = [];
  const began = performance.now();
  const before = process.cpuUsage();
  let [runs, effects] = [0, 0];
  for (let seed = first; seed < first + count && performance.now() - began < msMax; seed++) {
    const result = await simulate(scenarioOf(seed, { days }));
    runs++;
    effects += result.effects;
    addTo(faults, result.faults);
    addTo(reached, result.reached);
    const { violation } = result;
    if (violation) failures.push({ seed, promise: violation.promise, message: violation.message });
  }
  const minutes = (performance.now() - began) / 60_000;
  const { user, system } = process.cpuUsage(before);
  const coreMinutes = (user + system) / 60e6;
  const broken: Regression[] = [];
  for (const { seed, promise, message } of failures.slice(0, shrunkMax)) {
    const scenario = await shrink(scenarioOf(seed, { days }), promise);
    broken.push({ promise, message, scenario });
  }
  const lines = [
    `${runs} runs from seed ${first}, ${Math.round(runs / minutes)} a minute (${Math.round(runs / coreMinutes)} a minute of one core), ${effects} effects`,
    ...coverageTable(faults, reached),
    `${failures.length} violations${failures.length > 0 ? `: seeds ${failures.map(({ seed }) => seed).join(", ")}` : ""}`,
  ];
  return { broken, lines };
}

function addTo<Key>(sum: Map<Key, number>, more: ReadonlyMap<Key, number>): void {
  for (const [key, count] of more) sum.set(key, (sum.get(key) ?? 0) + count);
}
