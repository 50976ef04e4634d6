import { fleetScenarioOf } from "./fleet/workload.js";
import type { Scenario } from "./scenario.js";
import { scenarioOf, type WorkloadOptions } from "./workload.js";

export interface Drawn extends WorkloadOptions {
  /** Several hosts share one workspace. */
  isFleet: boolean;
}

/** The scenario of a seed, of one machine or of a fleet. */
export function drawn(seed: number, { isFleet, ...workload }: Drawn): Scenario {
  return isFleet ? fleetScenarioOf(seed) : scenarioOf(seed, workload);
}
