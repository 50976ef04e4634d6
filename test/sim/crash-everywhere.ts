import type { Take } from "./chains.js";
import type { PlannedFault, Scenario } from "./scenario.js";
import { servedCalm, servedLossy } from "./served/workload.js";
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

/** A chain of three, a child of two, and one of a second output; their addresses live for less than the run takes. */
export function chained(seed = 3): Scenario {
  const scenario = calm(seed);
  const takes: Record<string, readonly Take[]> = {
    "item-0": [{ field: "image_url", of: "item-3", output: 1 }],
    "item-1": [{ field: "image_url", of: "item-0", output: 2 }],
    "item-4": [
      { field: "image_url", of: "item-3", output: 1 },
      { field: "audio_url", of: "item-2", output: 1 },
    ],
  };
  return {
    ...scenario,
    items: scenario.items.map((item) => {
      const own = takes[item.id];
      return own === undefined ? item : { ...item, takes: own };
    }),
    taskMs: { min: 2_000, max: 90_000 },
    switches: { urlMs: 20_000, signing: "each-look", outputs: { number: 2 } },
  };
}

/** The same with one item of each kind first, and two parents that a person has to approve. */
export function asked(seed = 1): Scenario {
  const { items, ...scenario } = chained(seed);
  const asks = ["item-3", "item-0"];
  return {
    ...scenario,
    canary: true,
    items: items.map((item) => (asks.includes(item.id) ? { ...item, approve: true } : item)),
  };
}

/**
 * The same chains, and three files for five of its items: one takes minutes to publish and fails now and then, and one
 * parent's task is soon forgotten, so that its archived file is published for its children.
 */
export function published(seed = 3): Scenario {
  const { items, ...scenario } = chained(seed);
  const files: Record<string, string> = {
    "item-0": "photo-0.png",
    "item-1": "photo-1.png",
    "item-2": "photo-0.png",
    "item-3": "copy-0.png",
    "item-5": "photo-2.png",
  };
  return {
    ...scenario,
    items: items.map((item) => ({ ...item, ...(files[item.id] ? { file: files[item.id] as string } : {}) })),
    publishing: { lifeMs: 700_000, longestMs: 60_000, failing: 0.2, changes: [] },
    faults: [
      { at: "request", endpoint: "generate", nth: 2, fault: { kind: "task-vanishes", afterMs: 60_000 } },
    ],
  };
}

/** The runs that are crashed everywhere, by name. */
export const crashed = {
  calm,
  crowded,
  chained,
  asked,
  published,
  served: servedCalm,
  lossy: servedLossy,
};

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
      const whole = crashed[run]();
      const scenario: Scenario = { ...whole, faults: [...whole.faults, ...faults] };
      const { violation } = await simulate(scenario);
      crashes.runs++;
      if (violation) crashes.violations.push({ scenario, message: violation.message });
    }
  }
  return crashes;
}
