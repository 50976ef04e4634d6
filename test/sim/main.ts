import { join } from "node:path";
import { parseArgs } from "node:util";
import { campaign } from "./campaign.js";
import { crashEverywhere } from "./crash-everywhere.js";
import { huntAll } from "./hunt.js";
import { saveRegression } from "./regressions.js";

/**
 * The simulation as a command. Exit code 1 when a promise was broken or a mutant got away.
 *
 *   --seeds N           so many runs (--seed S: from that seed on), --days D: longer ones
 *   --crash-everywhere  a six-item run, crashed at every effect
 *   --mutants           broken runners, each of which must be caught
 *   --short             for each check of a change: 2,000 seeds or two minutes of them, and one mutant
 */
const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    seed: { type: "string", default: "1" },
    days: { type: "string", default: "1" },
    mutants: { type: "boolean", default: false },
    "crash-everywhere": { type: "boolean", default: false },
    short: { type: "boolean", default: false },
  },
});

const regressions = join("test", "sim", "regressions");
const first = Number(values.seed);
let isGood = true;

if (values.seeds !== undefined || values.short) {
  const count = Number(values.seeds ?? 2_000);
  const msMax = values.short ? 120_000 : Number.POSITIVE_INFINITY;
  const { broken, lines } = await campaign({ first, count, days: Number(values.days), msMax });
  console.log(lines.join("\n"));
  for (const regression of broken) {
    isGood = false;
    const name = values.short ? "" : ` (kept as ${saveRegression(regressions, regression)})`;
    console.log(`seed ${regression.scenario.seed}${name}: ${regression.message}`);
    console.log(`  ${regression.scenario.items.length} items, ${JSON.stringify(regression.scenario.faults)}`);
  }
}
if (values["crash-everywhere"]) {
  const { places, runs, violations } = await crashEverywhere();
  console.log(`crash everywhere: ${places} effects, ${runs} runs, ${violations.length} violations`);
  for (const { scenario, violation } of violations.slice(0, 10)) {
    console.log(`  ${JSON.stringify(scenario.faults)}: ${violation.message}`);
  }
  isGood &&= violations.length === 0;
}
if (values.mutants || values.short) {
  const { lines, escaped } = await huntAll(values.short ? "canary" : "all");
  console.log(lines.join("\n"));
  isGood &&= escaped === 0;
}
process.exitCode = isGood ? 0 : 1;
