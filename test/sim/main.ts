import { join } from "node:path";
import { parseArgs } from "node:util";
import { campaign } from "./campaign.js";
import { type Crashes, type crashed, places } from "./crash-everywhere.js";
import { spread } from "./crew.js";
import type { Drawn } from "./drawn.js";
import { type Catch, canary, fleetCanary, servedCanary } from "./hunt.js";
import { allMutants } from "./mutants.js";
import { loadRegressions, saveRegression } from "./regressions.js";

/**
 * The simulation as a command. Exit code 1 when a promise was broken, a mutant got away, or many seeds did not reach
 * what they should.
 *
 *   --seeds N           so many runs (--seed S: from that seed on), --days D: longer ones, --minutes M: no more after that
 *                       --dense: what few runs have is in a third of them
 *                       --crowd: all have an unlimited plan and sixteen lanes, whose transactions share commits
 *   --fleet             the runs, or the mutants, are of several hosts that share a workspace
 *   --served            the runs, the crashes or the mutants are with the service of a models file at the other end
 *   --crash-everywhere  a six-item run, one with sixteen lanes and one of chains, crashed at every effect
 *   --mutants           broken runners, each of which must be caught
 *   --regressions       everything that once broke a promise
 *   --short             for each check of a change: 15 seeds, 5 of fleets and 10 with a served models file, one crash in sixteen of the six-item run, some of the others,
 *                       all regressions and a mutant of each
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    seed: { type: "string", default: "1" },
    days: { type: "string", default: "1" },
    minutes: { type: "string" },
    dense: { type: "boolean", default: false },
    crowd: { type: "boolean", default: false },
    fleet: { type: "boolean", default: false },
    served: { type: "boolean", default: false },
    mutants: { type: "boolean", default: false },
    "crash-everywhere": { type: "boolean", default: false },
    regressions: { type: "boolean", default: false },
    short: { type: "boolean", default: false },
  },
});

const regressions = join("test", "sim", "regressions");
/** In the short form the run of six items and the longer ones are crashed at each effect of these numbers and their multiples. */
const calmEvery = 16;
const crashedEvery = 240;
const servedEvery = 60;
/** So many seeds have to reach every possible pair of fault and state. */
const longForm = 5_000;
/** Seeds of the short form: the same on every machine, however fast. */
const shortSeeds = 15;
const shortFleets = 5;
const shortServed = 10;

type Kind = Pick<Drawn, "isFleet" | "isServed">;
const kind: Kind = { isFleet: values.fleet, isServed: values.served };

async function seeds(count: number, kind: Kind): Promise<boolean> {
  const first = Number(values.seed);
  const minutes = Number(values.minutes ?? Number.POSITIVE_INFINITY);
  const msMax = minutes * 60_000;
  const workload = { days: Number(values.days), isDense: values.dense, isCrowd: values.crowd, ...kind };
  const { broken, missing, lines } = await campaign({ first, count, msMax, ...workload });
  console.log(lines.join("\n"));
  for (const regression of broken) {
    const name = values.short ? "" : ` (kept as ${saveRegression(regressions, regression)})`;
    console.log(`seed ${regression.scenario.seed}${name}: ${regression.message}`);
    console.log(`  ${regression.scenario.items.length} items, ${JSON.stringify(regression.scenario.faults)}`);
  }
  // Without limits, a service does not refuse for them: a crowd meets fewer pairs.
  const reachesAll = count < longForm || values.crowd || missing.length === 0;
  return broken.length === 0 && reachesAll;
}

async function crashes(run: keyof typeof crashed, every = 1): Promise<boolean> {
  const all: Crashes = { runs: 0, violations: [] };
  const count = Math.floor((await places(run)) / every);
  const asks = Array.from({ length: count }, (_, index) => ({ nth: (index + 1) * every, run }));
  await spread("crashes", asks, ({ runs, violations }) => {
    all.runs += runs;
    all.violations.push(...violations);
  });
  console.log(
    `crash everywhere, ${run}: ${asks.length} effects, ${all.runs} runs, ${all.violations.length} violations`,
  );
  for (const { scenario, message } of all.violations.slice(0, 10)) {
    console.log(`  ${JSON.stringify(scenario.faults)}: ${message}`);
  }
  return all.violations.length === 0;
}

/** Plays what once broke a promise. */
async function oldViolations(): Promise<boolean> {
  const asks = loadRegressions(regressions).map(({ name, regression: { scenario } }) => ({ name, scenario }));
  let broken = 0;
  await spread("regression", asks, ({ name, message }) => {
    if (message === null) return;
    broken++;
    console.log(`${name}: ${message}`);
  });
  console.log(`regressions: ${asks.length} runs, ${broken} violations`);
  return broken === 0;
}

async function mutants(asks: readonly { name: string; first?: number }[]): Promise<boolean> {
  const caught: Catch[] = [];
  await spread("mutant", asks, (answer) => {
    caught.push(answer);
    const { mutant, seed, message } = answer;
    const what =
      seed === null
        ? "ESCAPED "
        : `seed ${String(seed).padStart(3)} ${mutant.padEnd(56)} ${message.slice(0, 120)}`;
    console.log(seed === null ? `${what} ${mutant}` : what);
  });
  const escaped = caught.filter(({ seed }) => seed === null).length;
  console.log(`${caught.length - escaped} of ${caught.length} mutants caught`);
  return escaped === 0;
}

const verdicts: boolean[] = [];
if (values.seeds !== undefined || values.short)
  verdicts.push(await seeds(Number(values.seeds ?? shortSeeds), kind));
if (values.short) verdicts.push(await seeds(shortFleets, { isFleet: true, isServed: false }));
if (values.short) verdicts.push(await seeds(shortServed, { isFleet: false, isServed: true }));
const ofServed = ["served", "lossy"] as const;
const others = ["crowded", "chained", "asked", "published"] as const;
if (values.short || (values["crash-everywhere"] && !values.served)) {
  verdicts.push(await crashes("calm", values.short ? calmEvery : 1));
  for (const run of others) verdicts.push(await crashes(run, values.short ? crashedEvery : 1));
}
if (values.short || (values["crash-everywhere"] && values.served))
  for (const run of ofServed) verdicts.push(await crashes(run, values.short ? servedEvery : 1));
if (values.regressions || values.short) verdicts.push(await oldViolations());
const wanted = allMutants().filter(
  ({ isFleet = false, isServed = false }) => (isFleet || !values.fleet) && (isServed || !values.served),
);
if (values.mutants) verdicts.push(await mutants(wanted.map(({ name }) => ({ name }))));
else if (values.short) verdicts.push(await mutants([canary, fleetCanary, servedCanary]));
process.exitCode = verdicts.every((isGood) => isGood) ? 0 : 1;
