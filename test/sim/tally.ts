import type { ItemState } from "../../src/core/item.js";
import { type Drawn, drawn } from "./drawn.js";
import { type FleetCounts, noCounts } from "./fleet/rules.js";
import type { FaultKind } from "./scenario.js";
import { noServedCounts, type ServedCounts } from "./served/counts.js";
import { simulate } from "./simulate.js";

/** What some seeds came to. */
export interface Tally {
  runs: number;
  effects: number;
  faults: Map<FaultKind, number>;
  /** States in which items were when a fault happened: `lost-reply submitting` and how often. */
  reached: Map<string, number>;
  /** In which states the items were at the end, and how many. */
  ended: Map<ItemState, number>;
  fleet: FleetCounts;
  served: ServedCounts;
  failures: { seed: number; promise: string; message: string }[];
}

export interface Seeds extends Drawn {
  first: number;
  count: number;
}

export function emptyTally(): Tally {
  return {
    runs: 0,
    effects: 0,
    faults: new Map(),
    reached: new Map(),
    ended: new Map(),
    fleet: noCounts(),
    served: noServedCounts(),
    failures: [],
  };
}

export async function tally({ first, count, ...workload }: Seeds): Promise<Tally> {
  const sum = emptyTally();
  for (let seed = first; seed < first + count; seed++) {
    const { effects, faults, reached, ended, fleet, served, violation } = await simulate(
      drawn(seed, workload),
    );
    const failures = violation ? [{ seed, promise: violation.promise, message: violation.message }] : [];
    addTo(sum, { runs: 1, effects, faults, reached, ended, fleet, served, failures });
  }
  return sum;
}

interface Added extends Omit<Tally, "faults" | "reached" | "ended"> {
  faults: ReadonlyMap<FaultKind, number>;
  reached: ReadonlyMap<string, number>;
  ended: ReadonlyMap<ItemState, number>;
}

export function addTo(sum: Tally, more: Added): void {
  sum.runs += more.runs;
  sum.effects += more.effects;
  for (const [kind, count] of more.faults) sum.faults.set(kind, (sum.faults.get(kind) ?? 0) + count);
  for (const [pair, count] of more.reached) sum.reached.set(pair, (sum.reached.get(pair) ?? 0) + count);
  for (const [state, count] of more.ended) sum.ended.set(state, (sum.ended.get(state) ?? 0) + count);
  for (const what of Object.keys(more.fleet) as (keyof FleetCounts)[]) sum.fleet[what] += more.fleet[what];
  for (const what of Object.keys(more.served) as (keyof ServedCounts)[])
    sum.served[what] += more.served[what];
  sum.failures.push(...more.failures);
}
