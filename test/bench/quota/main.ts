import { parseArgs } from "node:util";
import { type PlanName, planLimits } from "../../../src/api/plans.js";
import { lanesOf } from "../../../src/core/quota/quota.js";
import { AccountLedger } from "./account-ledger.js";
import {
  type Case,
  documented,
  foreseen,
  mainCases,
  otherCases,
  type Refusing,
  refusing,
  shortCases,
  timeForeseen,
} from "./cases.js";
import { foresee } from "./foresee.js";
import { Door } from "./limiter.js";
import { type Job, jobsOf } from "./mixes.js";
import { OurRun } from "./ours.js";
import { Scene, start } from "./scene.js";
import { type Figures, figuresOf, leastMs, TimedService } from "./service.js";
import { usual, usualPolling } from "./usual.js";

/**
 * Requests an item, time against the least possible, lateness and tasks left uncollected, of this program's decisions
 * and of the polling that people use, over the same generations in the same run; and how many requests the limiters of
 * the sandbox refuse. `--seeds N`, `--from N` for other seeds, `--only TEXT` for the cases with the text in their name,
 * `--short` for a few small cases with one seed.
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string", default: "7000" },
    only: { type: "string", default: "" },
    short: { type: "boolean", default: false },
  },
});
const seeds = values.short ? 1 : Number(values.seeds ?? 30);
const firstSeed = Number(values.from);

/** What the time of a run is held against; the pace may have changed in mid-run, so by what really happened. */
async function yardstick(each: Case, jobs: readonly Job[], seed: number, service: TimedService) {
  if (each.timeOf?.startsWith("unlimited")) {
    const eager = usualPolling["every 0.5 s without a quota"];
    const through = each.timeOf === "unlimited" ? {} : { lanes: each.lanes ?? lanesOf(each.plan) };
    return (await usual(new TimedService(jobs, seed), each.plan, eager, through)).ms;
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
  const count = values.short ? 1 : Math.max(Math.min(seeds, each.seedsMost ?? seeds), each.seedsLeast ?? 1);
  const sums: Sums = { requests: 0, ratios: [], lateMs: 0, seen: 0, left: 0 };
  for (let seed = 1; seed <= count; seed++) {
    const jobs = jobsOf({ ...each, seed: firstSeed + seed });
    const service = new TimedService(jobs, firstSeed + seed, each.paceAfterHalf);
    const figures = await run(service);
    sums.requests += figures.requests / each.items / count;
    sums.lateMs += figures.lateMs / count;
    sums.seen += figures.seen / count;
    sums.left += figures.left / count;
    sums.ratios.push(figures.ms / (await yardstick(each, jobs, seed, service)));
  }
  sums.ratios.sort((a, b) => a - b);
  return sums;
}

/** An account that nothing was sent for yet, in the program's own ledger. */
async function newAccount(service: TimedService, plan: PlanName, door: Door | null, lanes?: number) {
  const ledgers: AccountLedger[] = [];
  const open = (clock: () => number) => {
    ledgers.push(new AccountLedger(planLimits[plan], clock));
    return ledgers[0] as AccountLedger;
  };
  const scene = new Scene(service, plan, door, open, lanes);
  return { scene, ledger: await (ledgers[0] as AccountLedger).open() };
}

async function ours(service: TimedService, each: Case, history: readonly Job[] = []): Promise<Figures> {
  const { plan, profile, untilMs, lanes } = each;
  const own = each.isNewAccount ? await newAccount(service, plan, null, lanes) : null;
  const scene = own?.scene ?? new Scene(service, plan, null, undefined, lanes);
  const run = new OurRun(scene, [...service.jobs.keys()], profile ?? null, history);
  await scene.play([run], untilMs);
  await own?.ledger.close();
  return figuresOf(service, run.lastSeen - start);
}

function row(name: string, policy: string, { untilMs }: Case, sums: Sums): string {
  const mean = sums.ratios.reduce((sum, ratio) => sum + ratio, 0) / sums.ratios.length;
  const p90 = sums.ratios[Math.floor(0.9 * sums.ratios.length)] ?? 0;
  const time = untilMs === undefined ? `${mean.toFixed(3)} (p90 ${p90.toFixed(2)})` : "";
  const requests = untilMs === undefined ? sums.requests.toFixed(3) : "";
  const late = `${(sums.lateMs / 1_000).toFixed(1)} s`;
  return `| ${name} | ${policy} | ${requests} | ${time} | ${late} | ${sums.seen.toFixed(0)} | ${sums.left.toFixed(1)} |`;
}

/** The program's own ledger against a limiter that it does not know. */
async function refusedBy({ plan, limiter, runs }: Refusing, seed: number) {
  const jobs = jobsOf({ mix: "mixed", items: 120, seed });
  const service = new TimedService(jobs, seed);
  const door = new Door(plan, limiter);
  const { scene, ledger } = await newAccount(service, plan, door);
  const parts = Array.from({ length: runs }, (_, part) =>
    [...jobs.keys()].filter((index) => index % runs === part),
  );
  const all = parts.map((items) => new OurRun(scene, items, null));
  await scene.play(all);
  await ledger.close();
  const figures = figuresOf(service, Math.max(...all.map(({ lastSeen }) => lastSeen)) - start);
  return { ...figures, pacing: ledger.pacing, ratio: figures.ms / leastMs(jobs, plan), items: jobs.length };
}

async function refusals(each: Refusing): Promise<string> {
  const found: Awaited<ReturnType<typeof refusedBy>>[] = [];
  for (let seed = 1; seed <= seeds; seed++) found.push(await refusedBy(each, firstSeed + seed));
  const mean = (of: (figures: (typeof found)[number]) => number) =>
    found.reduce((sum, figures) => sum + of(figures), 0) / found.length;
  const refused = `${Math.max(...found.map((figures) => figures.refused))}`;
  const pacings = [...new Set(found.map(({ pacing }) => pacing))].join(", ");
  const requests = mean((figures) => figures.requests / figures.items).toFixed(2);
  return `| ${each.plan} | ${each.limiter} | ${each.runs} | ${refused} | ${pacings} | ${requests} | ${mean(({ ratio }) => ratio).toFixed(2)} | ${Math.min(...found.map(({ seen }) => seen))} |`;
}

const cases = values.short ? shortCases : [...mainCases, ...otherCases];
console.log(`means over ${seeds} seeds`);
console.log(
  "| Case | Policy | Requests an item | Time, × the least | Median lateness | Seen | Paid, not seen |",
);
console.log("|---|---|---|---|---|---|---|");
for (const each of cases.filter(({ name }) => name.includes(values.only))) {
  console.log(row(each.name, "bulkgen", each, await measure(each, (service) => ours(service, each))));
  for (const policy of values.short
    ? (each.against ?? documented).slice(0, 1)
    : (each.against ?? documented)) {
    const polling = usualPolling[policy];
    const measured = await measure(each, (service) => usual(service, each.plan, polling, each));
    console.log(row("", policy, each, measured));
  }
}
console.log(
  "\n| Plan | Limiter | Runs | Refused, at most | Pacing in the end | Requests an item | Time, × the least | Seen of 120 |",
);
console.log("|---|---|---|---|---|---|---|---|");
const limited = values.short ? refusing.slice(0, 1) : refusing;
for (const each of limited.filter(({ limiter }) => limiter.includes(values.only)))
  console.log(await refusals(each));

console.log("\n| Plan | Mix | Items | Requests an item, forecast | as it came |");
console.log("|---|---|---|---|---|");
const forecasts = values.short ? foreseen.slice(0, 2) : foreseen;
for (const each of forecasts.filter(() => "forecast".includes(values.only))) {
  const forecast: number[] = [];
  const { requests } = await measure({ ...each, name: "" }, (service) => {
    forecast.push(foresee(service.jobs, each.plan).requests / each.items);
    return ours(service, { ...each, name: "" });
  });
  const mean = forecast.reduce((sum, value) => sum + value, 0) / forecast.length;
  console.log(`| ${each.plan} | ${each.mix} | ${each.items} | ${mean.toFixed(2)} | ${requests.toFixed(2)} |`);
}

console.log(
  "\n| Plan | Mix | Items | History | Time, forecast | as it came | Error of the mean | Median error of a run |",
);
console.log("|---|---|---|---|---|---|---|---|");
const timed = values.short ? timeForeseen.slice(0, 2) : timeForeseen;
for (const each of timed.filter(() => "time forecast".includes(values.only))) {
  const runs: { foreseenMs: number; ms: number }[] = [];
  for (let seed = firstSeed + 1; seed <= firstSeed + seeds; seed++) {
    const service = new TimedService(jobsOf({ ...each, seed }), seed);
    const history = each.knows ? jobsOf({ ...each, items: 100, seed: seed + 1_000_000 }) : [];
    const foreseenMs = foresee(service.jobs, each.plan, history).ms;
    runs.push({ foreseenMs, ms: (await ours(service, { ...each, name: "" }, history)).ms });
  }
  const mean = (of: (run: (typeof runs)[number]) => number) =>
    runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
  const [foreseenS, s] = [mean(({ foreseenMs }) => foreseenMs) / 1_000, mean(({ ms }) => ms) / 1_000];
  const errors = runs.map(({ foreseenMs, ms }) => Math.abs(foreseenMs / ms - 1)).toSorted((a, b) => a - b);
  const percent = (share: number) => `${(100 * share).toFixed(0)} %`;
  console.log(
    `| ${each.plan} | ${each.mix} | ${each.items} | ${each.knows ? "100 of them" : "none"} | ${foreseenS.toFixed(0)} s | ${s.toFixed(0)} s | ${percent(foreseenS / s - 1)} | ${percent(errors[Math.floor(errors.length / 2)] ?? 0)} |`,
  );
}
