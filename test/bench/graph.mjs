/**
 * How long a sheet takes to plan whose items take outputs of each other, beside the same sheet with addresses in place of
 * the references, and how much memory that takes. Each is planned in a process of its own, and processor time is compared.
 *
 *   node test/bench/graph.mjs [--short] [--json]
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fromDist, me } from "./planning.mjs";
import { newFolder, short, writeSheet } from "./setup.mjs";

const items = short ? 500 : 100_000;
/** In one chain, and in one circle. */
const inOne = short ? 500 : 10_000;

const first = "https://files.example/first.mp4";
/** What row n takes as its input. */
const kinds = {
  addresses: { rows: items, input: () => first },
  "one parent each": { rows: items, input: (n) => (n % 100 === 0 ? first : `@i${n - (n % 100)}`) },
  "chains of ten": { rows: items, input: (n) => (n % 10 === 0 ? first : `@i${n - 1}`) },
  "one chain": { rows: inOne, input: (n) => (n === 0 ? first : `@i${n - 1}`) },
  "one circle": { rows: inOne, input: (n, rows) => `@i${(n + rows - 1) % rows}`, problems: true },
};

const models = [
  {
    ...{ model_key: "extend", model_name: "extend", category: "video", credits_cost: 3, input_type: "video" },
    parameters: [],
  },
];

const [, , task, file] = process.argv;
if (task === "plan") await planned(file);
else main();

function main() {
  const folder = newFolder("graph");
  const results = Object.entries(kinds).map(([name, kind]) => measured(name, kind, folder));
  if (process.argv.includes("--json")) console.log(JSON.stringify(results, null, 2));
  else
    for (const { name, rows, seconds, megabytes } of results)
      console.log(
        `${name.padEnd(16)} ${String(rows).padStart(7)} items  ${seconds.toFixed(1).padStart(5)} s  ${megabytes} MB`,
      );
}

function measured(name, { rows, input, problems = false }, folder) {
  const path = join(folder, "sheet.csv");
  writeSheet(path, "id,model,video_url", rows, (n) => `i${n},extend,${input(n, rows)}`);
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [fileURLToPath(import.meta.url), "plan", path],
    { encoding: "utf8" },
  );
  if (status !== 0) throw new Error(stderr);
  const { made, wrong, ...figures } = JSON.parse(stdout);
  if (problems ? wrong !== rows : made !== rows)
    throw new Error(`${name}: ${made} items and ${wrong} problems of ${rows} rows`);
  return { name, rows, ...figures };
}

async function planned(path) {
  const { openManifest, begin, makePlan, openDraft } = await fromDist();
  const before = process.cpuUsage();
  const draft = openDraft();
  const manifest = await openManifest(path);
  const place = { origin: "https://service.example", edition: "", existing: [], now: Date.UTC(2026, 10, 21) };
  const plan = await makePlan({ ...place, manifest, draft, models, me }, await begin(manifest, draft));
  const [made, wrong] = [plan.items.length, plan.problems.length];
  const { user, system } = process.cpuUsage(before);
  const seconds = (user + system) / 1e6;
  const megabytes = Math.round(process.resourceUsage().maxRSS / 1024);
  console.log(JSON.stringify({ made, wrong, seconds, megabytes }));
}
