import type { Substitution } from "./runner.js";
import type { PlannedFault, Scenario } from "./scenario.js";
import { simulate } from "./simulate.js";

/** Runs that are spent on making one failing scenario smaller. */
const runsMax = 150;

/**
 * Makes a failing scenario smaller as long as it breaks the same promise: first its faults by delta debugging, halves
 * before single ones, then its items from the end.
 */
export async function shrink(scenario: Scenario, promise: string, mutant?: Substitution): Promise<Scenario> {
  let runs = 0;
  const fails = async (smaller: Scenario) =>
    runs++ < runsMax && (await simulate(smaller, mutant)).violation?.promise === promise;
  let best = scenario;
  for (let size = best.faults.length; size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < best.faults.length; ) {
      const smaller = { ...best, faults: without(best.faults, at, size) };
      if (await fails(smaller)) best = smaller;
      else at += size;
    }
  }
  for (let count = Math.floor(best.items.length / 2); count >= 1; count = Math.floor(count / 2)) {
    while (best.items.length > count) {
      const smaller = { ...best, items: best.items.slice(0, -count) };
      if (!(await fails(smaller))) break;
      best = smaller;
    }
  }
  return best;
}

function without(faults: readonly PlannedFault[], at: number, count: number): PlannedFault[] {
  return [...faults.slice(0, at), ...faults.slice(at + count)];
}
