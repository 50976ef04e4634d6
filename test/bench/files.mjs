/**
 * How long a folder of photos takes to plan as rows, and how much memory that takes. The reading of the photos, which are hashed
 * because a changed photo is a changed row, is told apart. The time is of a process of its own, without the loading of modules.
 *
 *   node test/bench/files.mjs [--short] [--rows N] [--json]
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import sharp from "sharp";
import { fromDist, me } from "./planning.mjs";
import { newFolder, numberOf, short } from "./setup.mjs";

const rows = numberOf("--rows", short ? 300 : 10_000);
const folders = 100;
/** The most seconds that planning may take without the reading of the photos, and its memory in MB. */
const aims = { seconds: 5, megabytes: 200 };

const models = [
  {
    ...{
      model_key: "upscale",
      model_name: "upscale",
      category: "image",
      credits_cost: 3,
      input_type: "image",
    },
    parameters: [],
  },
];

const [, , task, manifest] = process.argv;
if (task === "plan") await planned(manifest);
else await main();

async function main() {
  const folder = join(newFolder("files"), "photos");
  await writePhotos(folder);
  const results = [folder, join(folder, "**", "*.jpg")].map(measured);
  if (process.argv.includes("--json")) console.log(JSON.stringify(results, null, 2));
  else
    for (const [index, { seconds, reading, megabytes }] of results.entries())
      console.log(
        `${index === 0 ? "folder " : "pattern"} ${rows} rows  ${seconds.toFixed(2)} s, and ${reading.toFixed(2)} s of reading  ${megabytes} MB`,
      );
  for (const { seconds, megabytes } of results)
    if (seconds > aims.seconds || megabytes > aims.megabytes)
      console.error(`files: the aim is ${aims.seconds} s and ${aims.megabytes} MB`);
}

/** Small photos, each with bytes of its own after its end. */
async function writePhotos(folder) {
  const create = { width: 320, height: 240, channels: 3, background: "#7a8" };
  const photo = await sharp({ create }).jpeg().toBuffer();
  for (let n = 0; n < rows; n++) {
    const below = join(folder, `flat-${n % folders}`);
    if (n < folders) mkdirSync(below, { recursive: true });
    writeFileSync(join(below, `IMG_${n}.jpg`), Buffer.concat([photo, Buffer.from(`photo ${n}`)]));
  }
}

function measured(path) {
  const self = fileURLToPath(import.meta.url);
  const { status, stdout, stderr } = spawnSync(process.execPath, [self, "plan", path], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  const { made, wrong, ...figures } = JSON.parse(stdout);
  if (made !== rows || wrong !== 0) throw new Error(`${made} items and ${wrong} problems of ${rows} files`);
  return figures;
}

async function planned(path) {
  const { openManifest, begin, makePlan, openDraft, LocalInputs } = await fromDist();
  const began = process.hrtime.bigint();
  const since = (from) => Number(process.hrtime.bigint() - from) / 1e9;
  const inputs = new LocalInputs(path);
  let reading = 0;
  const localInputs = {
    found: inputs.found,
    async read(some) {
      const from = process.hrtime.bigint();
      await inputs.read(some);
      reading += since(from);
    },
  };
  const draft = openDraft();
  const manifest = await openManifest(path, { defaults: { model: "upscale" }, today: "2026-11-21" });
  const begun = await begin(manifest, draft);
  const place = { origin: "https://service.example", edition: "", existing: [], now: Date.UTC(2026, 10, 21) };
  const plan = await makePlan({ manifest, draft, models, me, localInputs, ...place }, begun);
  const seconds = since(began) - reading;
  const megabytes = Math.round((process.resourceUsage().maxRSS * 1024) / 1e6);
  console.log(
    JSON.stringify({ seconds, reading, megabytes, made: plan.items.length, wrong: plan.problems.length }),
  );
  draft.close();
}
