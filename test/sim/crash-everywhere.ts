import type { PlannedFault, Scenario } from "./scenario.js";
import { simulate } from "./simulate.js";
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
    tellsTime: true,
    switches: {},
    faults: [],
  };
}

/** Sixteen lanes on an unlimited plan, and items for all of them: their transactions share commits. */
export function crowded(seed = 1): Scenario {
  const items = Array.from({ length: 18 }, (_, index) => ({
    workspace: 0,
    id: `item-${index}`,
    name: `file-${index}`,
    model: "sketch",
    priority: 0,
  }));
  return { ...calm(seed), items, plan: "Enterprise", rpm: null, rpd: null, lanes: 16 };
}

/** The runs that are crashed everywhere, by name. */
export const crashed = { calm, crowded };

export interface Crashes {
  runs: number;
  violations: { scenario: Scenario; message: string }[];
}

/** How many effects a run has, at each of which it can be crashed. */
export async function places(run: keyof typeof crashed = "calm"): Promise<number> {
  return (await simulate(crashed[run]())).effects;
}

/** Crashes that run at one of its effects: before and after it, by kill and by power cut. */
export async function crashesAt(nth: number, run: keyof typeof crashed = "calm"): Promise<Crashes> {
  const crashes: Crashes = { runs: 0, violations: [] };
  for (const kind of ["crash", "power-cut"] as const) {
    for (const after of [false, true]) {
      const faults: PlannedFault[] = [{ at: "effect", effect: "any", nth, fault: { kind, after } }];
      const scenario: Scenario = { ...crashed[run](), faults };
      const { violation } = await simulate(scenario);
      crashes.runs++;
      if (violation) crashes.violations.push({ scenario, message: violation.message });
    }
  }
  return crashes;
}
