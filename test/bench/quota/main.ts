import { parseArgs } from "node:util";
import type { Plan } from "../../../src/api/plans.js";
import type { PollProfile } from "../../../src/core/pressure.js";
import { type Job, jobsOf, type Wanted } from "./mixes.js";
import { ours } from "./ours.js";
import { type Figures, leastMs, TimedService } from "./service.js";
import { type UsualPolling, usual, usualPolling } from "./usual.js";

/**
 * Requests an item, time against the least possible, lateness and tasks left uncollected, of this program's decisions
 * and of the polling that people use, over the same generations in the same run. `--seeds N`, `--short` for few.
 */
const { values } = parseArgs({
  options: { seeds: { type: "string" }, short: { type: "boolean", default: false } },
});
const seeds = values.short ? 3 : Number(values.seeds ?? 30);
const dayMs = 86_400_000;

interface Case extends Omit<Wanted, "seed"> {
  name: string;
  plan: Plan;
  profile?: PollProfile;
  /** Others to compare with; the documented polling when left out. */
  against?: readonly UsualPolling[];
  untilMs?: number;
  /** What the time is a multiple of. */
  timeOf?: "least" | "unlimited";
}

const documented = ["2→10 s, 10 in flight"] as const;
const all = [
  ...documented,
  "2→10 s, no bound",
  "every 3 s, 10 in flight",
  "every 0.5 s, 10 in flight",
] as const;
const starter = { plan: "Starter", items: 400 } as const;

const cases: readonly Case[] = [
  { ...starter, name: "mixed 400, Starter", mix: "mixed", against: all },
  { ...starter, name: "mixed 400, Starter, frugal", mix: "mixed", profile: "frugal", against: [] },
  { ...starter, name: "mixed 400, Starter, eager", mix: "mixed", profile: "eager", against: [] },
  { name: "mixed 400, Pro", mix: "mixed", items: 400, plan: "Pro" },
  { ...starter, name: "images 400, Starter", mix: "images" },
  { ...starter, name: "video 90 s, 400, Starter", mix: "video" },
  { ...starter, name: "lognormal σ 1, mixed 400, Starter", mix: "lognormal, sigma 1" },
  { ...starter, name: "Pareto 1.5, mixed 400, Starter", mix: "Pareto 1.5" },
  {
    name: "mixed 400, Enterprise",
    mix: "mixed",
    items: 400,
    plan: "Enterprise",
    against: ["2→10 s, no bound"],
  },
  { name: "10 images, Starter", mix: "images", items: 10, plan: "Starter", timeOf: "unlimited" },
  { ...starter, name: "pace doubles in mid-run", mix: "mixed", paceAfterHalf: 2, against: [] },
  { ...starter, name: "pace halves in mid-run", mix: "mixed", paceAfterHalf: 0.5, against: [] },
  { ...starter, name: "three models a category, other paces", mix: "unseen models", against: [] },
  { ...starter, name: "one in ten fails", mix: "mixed", failing: 0.1, against: [] },
  { name: "all take 9 minutes, 100, Starter", mix: "9 minutes", items: 100, plan: "Starter", against: [] },
  {
    ...{ name: "a Starter day of 180 s videos", mix: "video of 180 s", items: 1_000, plan: "Starter" },
    ...{ untilMs: dayMs, against: [...documented, "2→10 s, no bound"] },
  },
];

/** What the time of a run is held against; the pace may have changed in mid-run, so by what really happened. */
async function yardstick(
  each: Case,
  jobs: readonly Job[],
  seed: number,
  service: TimedService,
): Promise<number> {
  if (each.timeOf === "unlimited") {
    const eager = usualPolling["every 0.5 s without a quota"];
    return (await usual(new TimedService(jobs, seed), each.plan, eager)).ms;
  }
  const real = jobs.map((job, index) => {
    const course = service.courses.get(index);
    return course ? { ...job, durationMs: course.doneAt - course.acceptedAt } : job;
  });
  return leastMs(real, each.plan);
}

interface Sums {
  requests: number;
  ratios: number[];
  lateMs: number;
  seen: number;
  left: number;
}

async function measure(each: Case, run: (service: TimedService) => Promise<Figures>): Promise<Sums> {
  const sums: Sums = { requests: 0, ratios: [], lateMs: 0, seen: 0, left: 0 };
  for (let seed = 1; seed <= seeds; seed++) {
    const jobs = jobsOf({ ...each, seed: 7_000 + seed });
    const service = new TimedService(jobs, seed, each.paceAfterHalf);
    const figures = await run(service);
    sums.requests += figures.requests / each.items / seeds;
    sums.lateMs += figures.lateMs / seeds;
    sums.seen += figures.seen / seeds;
    sums.left += figures.left / seeds;
    sums.ratios.push(figures.ms / (await yardstick(each, jobs, seed, service)));
  }
  sums.ratios.sort((a, b) => a - b);
  return sums;
}

function row(name: string, policy: string, { untilMs }: Case, sums: Sums): string {
  const mean = sums.ratios.reduce((sum, ratio) => sum + ratio, 0) / sums.ratios.length;
  const p90 = sums.ratios[Math.floor(0.9 * sums.ratios.length)] ?? 0;
  const time = untilMs === undefined ? `${mean.toFixed(2)} (p90 ${p90.toFixed(2)})` : "";
  const requests = untilMs === undefined ? sums.requests.toFixed(2) : "";
  const late = `${(sums.lateMs / 1_000).toFixed(1)} s`;
  return `| ${name} | ${policy} | ${requests} | ${time} | ${late} | ${sums.seen.toFixed(0)} | ${sums.left.toFixed(1)} |`;
}

console.log(`means over ${seeds} seeds`);
console.log(
  "| Case | Policy | Requests an item | Time, × the least | Median lateness | Seen | Paid, not seen |",
);
console.log("|---|---|---|---|---|---|---|");
for (const each of cases) {
  const { plan, profile = null, untilMs } = each;
  const setting = { plan, profile, ...(untilMs === undefined ? {} : { untilMs }) };
  console.log(
    row(each.name, "bulkgen", each, await measure(each, async (service) => ours(service, setting))),
  );
  for (const policy of each.against ?? documented) {
    const polling = usualPolling[policy];
    console.log(
      row("", policy, each, await measure(each, (service) => usual(service, plan, polling, untilMs))),
    );
  }
}
