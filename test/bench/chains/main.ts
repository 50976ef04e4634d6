import { parseArgs } from "node:util";
import type { Endpoint } from "../../../src/api/endpoints.js";
import { enrolling } from "../../sim/mutants-approval.js";
import type { Substitution } from "../../sim/runner.js";
import type { Scenario, ScenarioItem } from "../../sim/scenario.js";
import { simulate } from "../../sim/simulate.js";
import { scenarioOf } from "../../sim/workload.js";

/**
 * Requests an item of chains: 40 rows of a picture, a clip of it and a voice on the clip, on Starter, by the whole program
 * over the sandbox's world in the simulation's time; beside the same 120 items without chains. Nothing goes wrong there.
 * `--seeds N`, `--from N` for other seeds, `--rows N`, `--short` for one seed and ten rows.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "20" },
    from: { type: "string", default: "1" },
    rows: { type: "string" },
    short: { type: "boolean", default: false },
  },
});
const seeds = values.short ? 1 : Number(values.seeds);
const from = Number(values.from);
const rows = Number(values.rows ?? (values.short ? 10 : 40));

/** The simulation's models in the place of these, and how long a generation takes. */
const steps = [
  { step: "picture", model: "picture", taskMs: { min: 5_000, max: 12_000 } },
  { step: "clip", model: "print", taskMs: { min: 60_000, max: 130_000 } },
  { step: "voice", model: "sound", taskMs: { min: 8_000, max: 25_000 } },
] as const;

interface Case {
  name: string;
  isChained: boolean;
  /** How long an address lives. */
  urlMs: number;
}

const cases: readonly Case[] = [
  { name: "no chains", isChained: false, urlMs: 3_600_000 },
  { name: "chains of three", isChained: true, urlMs: 3_600_000 },
  { name: "the same, addresses of 15 minutes", isChained: true, urlMs: 900_000 },
  { name: "the same, addresses of 2 minutes", isChained: true, urlMs: 120_000 },
];

function itemsOf(isChained: boolean): ScenarioItem[] {
  return Array.from({ length: rows }, (_, row) =>
    steps.map(({ step, model }, at): ScenarioItem => {
      const parent = isChained && at > 0 ? `row-${row}-${steps[at - 1]?.step}` : null;
      return {
        workspace: 0,
        id: `row-${row}-${step}`,
        name: `row-${row}-${step}`,
        model,
        priority: 0,
        ...(parent === null ? {} : { takes: [{ field: "image_url", of: parent, output: 1 }] }),
      };
    }),
  ).flat();
}

function scenarioFor({ isChained, urlMs }: Case, seed: number): Scenario {
  const { daysMax } = scenarioOf(seed);
  return {
    seed,
    items: itemsOf(isChained),
    workspaces: 1,
    plan: "Starter",
    rpm: null,
    rpd: null,
    lanes: 1,
    downloads: 4,
    maxCredits: null,
    balance: 10_000,
    retries: 0,
    onDailyLimit: "stop",
    onInsufficient: "stop",
    settle: "stop",
    again: "resume",
    taskMs: { min: 1_000, max: 1_000 },
    modelMs: Object.fromEntries(steps.map(({ model, taskMs }) => [model, taskMs])),
    tellsTime: true,
    switches: { urlMs, signing: "each-look" },
    faults: [],
    daysMax,
  };
}

interface Figures {
  requests: Map<Endpoint, number>;
  minutes: number;
}

async function measured(each: Case, seed: number): Promise<Figures> {
  const requests = new Map<Endpoint, number>();
  const counting: Substitution = {
    parts: ({ send, inspect }) => ({
      send: (request, signal) => {
        requests.set(request.endpoint, (requests.get(request.endpoint) ?? 0) + 1);
        return send(request, signal);
      },
      // A clip is a video to the program, and a picture to the simulation.
      inspect: (disk, path, category) => inspect(disk, path, category === "video" ? "image" : category),
    }),
    store: enrolling((item) => (item.model === "print" ? { ...item, category: "video" } : item)),
  };
  const { violation, ended, ms } = await simulate(scenarioFor(each, seed), counting);
  const archived = ended.get("archived") ?? 0;
  if (violation !== null || archived !== 3 * rows)
    throw new Error(`${each.name}, seed ${seed}: ${archived} archived, ${violation?.message}`);
  return { requests, minutes: ms / 60_000 };
}

console.log(
  `${rows} rows of three items on Starter, means over ${seeds} seeds; the ideal is 2 requests an item`,
);
console.log("| What | Requests an item | submits | polls | other | Minutes |");
console.log("|---|---|---|---|---|---|");
for (const each of cases) {
  const all: Figures[] = [];
  for (let seed = from; seed < from + seeds; seed++) all.push(await measured(each, seed));
  const mean = (of: (figures: Figures) => number) => all.reduce((sum, one) => sum + of(one), 0) / all.length;
  const anItem = (...endpoints: Endpoint[]) =>
    mean(({ requests }) => endpoints.reduce((sum, one) => sum + (requests.get(one) ?? 0), 0)) / (3 * rows);
  const [submits, polls, other] = [anItem("generate"), anItem("task"), anItem("me", "models")];
  const figures = [submits + polls + other, submits, polls, other].map((figure) => figure.toFixed(3));
  console.log(`| ${each.name} | ${figures.join(" | ")} | ${mean(({ minutes }) => minutes).toFixed(1)} |`);
}
