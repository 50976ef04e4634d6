import { fleetScenarioOf } from "./fleet/workload.js";
import type { Scenario } from "./scenario.js";
import { servedScenarioOf } from "./served/workload.js";
import { scenarioOf, type WorkloadOptions } from "./workload.js";

export interface Drawn extends WorkloadOptions {
  /** Several hosts share one workspace. */
  isFleet: boolean;
  /** The service is the one of a models file. */
  isServed: boolean;
}

/** The scenario of a seed: of one machine, of a fleet, or with a served models file. */
export function drawn(seed: number, { isFleet, isServed, ...workload }: Drawn): Scenario {
  if (isServed) return servedScenarioOf(seed);
  return isFleet ? fleetScenarioOf(seed) : scenarioOf(seed, workload);
}
