/**
 * How long a large sheet takes from the file to the plan's own database, as a multiple of what csv-parse alone needs for
 * the same file, and how much memory that takes. Parser and plan take turns within the same run, each in a process of its
 * own, and processor time is compared: other work on the machine makes both slower, and not by the same measure.
 *
 *   node test/bench/manifest.mjs [--short] [--rounds N] [--json]
 */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fromDist, me } from "./planning.mjs";
import { median, newFolder, numberOf, short, writeSheet } from "./setup.mjs";

const rows = short ? 2_000 : 1_000_000;
const rounds = numberOf("--rounds", short ? 1 : 3);

/** The most that planning may take, as a multiple of csv-parse, and its memory in MB. */
const aims = { plain: 2.5, templates: 3.2, problems: null, megabytes: 300 };

const ratios = ["1:1", "16:9", "9:16", "4:3"];
const kinds = {
  plain: {
    header: "id,model,prompt,params.aspect_ratio,product,priority",
    row: (n) =>
      `item-${n},paint,"A studio photograph of product number ${n}, on a plain background, soft light",${ratios[n % 4]},Product ${n},`,
  },
  templates: {
    header: "id,product,background,lang,params.aspect_ratio",
    row: (n) => `item-${n},Product ${n},"a plain background, soft light ${n % 97}",de,${ratios[n % 4]}`,
    defaults: { model: "paint", prompt: "A studio photograph of {{ product }} on {{ background }}" },
  },
  problems: {
    header: "id,model,prompt",
    row: (n) => `item-${n},nobody,A studio photograph of product number ${n}`,
  },
};

const now = Date.UTC(2026, 10, 21);
const place = { origin: "https://service.example", edition: "", existing: [], now };
const models = [
  {
    ...{ model_key: "paint", model_name: "paint", category: "image", credits_cost: 4, input_type: "text" },
    parameters: [
      {
        ...{ key: "aspect_ratio", label: "Aspect ratio", type: "select", default: "1:1" },
        options: ratios.map((value) => ({ value, label: value })),
      },
    ],
  },
];

const [, , task, file, kind] = process.argv;
if (task === "parse") await parsed(file);
else if (task === "plan") await planned(file, kinds[kind].defaults ?? {});
else {
  const folder = newFolder("manifest");
  report(Object.keys(kinds).map((name) => measured(name, folder)));
}

function measured(name, folder) {
  const path = join(folder, `${name}.csv`);
  writeSheet(path, kinds[name].header, rows, kinds[name].row);
  const parse = [];
  const plan = [];
  for (let round = 0; round < rounds; round++) {
    parse.push(once("parse", path, name));
    plan.push(once("plan", path, name));
  }
  const middle = (list, of) => median(list.map(of));
  const [parseMs, planMs] = [parse, plan].map((list) => middle(list, ({ cpuMs }) => cpuMs));
  const found = plan[0];
  return {
    ...{ name, rows, bytes: statSync(path).size, parseMs, planMs, ratio: planMs / parseMs },
    wallRatio: middle(plan, ({ wallMs }) => wallMs) / middle(parse, ({ wallMs }) => wallMs),
    megabytes: Math.max(...plan.map((each) => each.megabytes)),
    items: found.items,
    problems: found.problems,
    told: found.told,
  };
}

function once(task, path, name) {
  const self = fileURLToPath(import.meta.url);
  const { status, stdout, stderr } = spawnSync(process.execPath, [self, task, path, name], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`manifest: ${task} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout);
}

/** Times what is done, without the loading of modules. */
async function timed(work) {
  const cpu = process.cpuUsage();
  const began = process.hrtime.bigint();
  const found = await work();
  const { user, system } = process.cpuUsage(cpu);
  const wallMs = Number(process.hrtime.bigint() - began) / 1e6;
  const megabytes = (process.resourceUsage().maxRSS * 1024) / 1e6;
  console.log(JSON.stringify({ cpuMs: (user + system) / 1000, wallMs, megabytes, ...found }));
}

async function parsed(path) {
  const [{ parse }, { createReadStream }] = await Promise.all([import("csv-parse"), import("node:fs")]);
  await timed(async () => {
    let records = 0;
    for await (const _ of createReadStream(path).pipe(parse())) records++;
    return { records };
  });
}

async function planned(path, defaults) {
  const { openManifest, begin, makePlan, openDraft, digestOf } = await fromDist();
  await timed(async () => {
    const draft = openDraft();
    const manifest = await openManifest(path, { defaults, today: "2026-11-21" });
    const begun = await begin(manifest, draft);
    const plan = await makePlan({ manifest, draft, models, me, ...place }, begun);
    const { reported } = digestOf(plan.problems);
    const found = { items: plan.items.length, problems: plan.problems.length, told: reported.length };
    draft.close();
    return found;
  });
}

function report(results) {
  if (process.argv.includes("--json")) {
    console.log(JSON.stringify({ node: process.version, cpus: cpus().length, rounds, results }));
    return;
  }
  console.log(`${rows} rows on Node ${process.version}, ${cpus().length} cores, median of ${rounds}`);
  for (const { name, parseMs, planMs, ratio, wallRatio, megabytes, items, problems, told } of results) {
    const times = `csv-parse ${(parseMs / 1000).toFixed(1)} s, plan ${(planMs / 1000).toFixed(1)} s`;
    const made = problems > 0 ? `${problems} problems, ${told} told` : `${items} items`;
    const clock = `${wallRatio.toFixed(2)} × by the clock`;
    console.log(
      `${name.padEnd(10)} ${times}: ${ratio.toFixed(2)} × (${clock}), ${megabytes.toFixed(0)} MB; ${made}`,
    );
    const aim = aims[name];
    if (aim !== null && ratio > aim)
      console.error(`manifest: ${name} takes ${ratio.toFixed(2)} times csv-parse, the aim is ${aim}`);
    if (megabytes > aims.megabytes)
      console.error(`manifest: ${name} takes ${megabytes.toFixed(0)} MB, the aim is ${aims.megabytes}`);
  }
}
