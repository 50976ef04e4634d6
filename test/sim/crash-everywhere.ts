import type { Scenario } from "./scenario.js";
import { type Result, simulate } from "./simulate.js";
import type { Violation } from "./watch.js";
import { scenarioOf } from "./workload.js";

/** A run of six items in which nothing goes wrong: what every crash is compared with. */
export function calm(seed = 1): Scenario {
  const scenario = scenarioOf(seed);
  return {
    ...scenario,
    items: ["picture", "sketch", "sound", "picture", "print", "sketch"].map((model, index) => ({
      workspace: 0,
      id: `item-${index}`,
      name: index < 2 ? "same" : `file-${index}`,
      model,
      priority: 0,
    })),
    workspaces: 1,
    plan: "Starter",
    rpm: 30,
    rpd: 1_000,
    lanes: 2,
    downloads: 2,
    maxCredits: null,
    balance: 10_000,
    taskMs: { min: 2_000, max: 9_000 },
    switches: {},
    faults: [],
  };
}

export interface Everywhere {
  /** Places at which the run was crashed, each before and after its effect, by kill and by power cut. */
  places: number;
  runs: number;
  violations: { scenario: Scenario; violation: Violation }[];
  results: Result[];
}

/** Crashes a six-item run at every effect that it has. */
export async function crashEverywhere(stopAt = Number.POSITIVE_INFINITY): Promise<Everywhere> {
  const base = calm();
  const places = (await simulate(base)).effects;
  const everywhere: Everywhere = { places, runs: 0, violations: [], results: [] };
  for (let nth = 1; nth <= Math.min(places, stopAt); nth++) {
    for (const kind of ["crash", "power-cut"] as const) {
      for (const after of [false, true]) {
        const scenario: Scenario = {
          ...base,
          faults: [{ at: "effect", effect: "any", nth, fault: { kind, after } }],
        };
        const result = await simulate(scenario);
        everywhere.runs++;
        everywhere.results.push(result);
        if (result.violation) everywhere.violations.push({ scenario, violation: result.violation });
      }
    }
  }
  return everywhere;
}
