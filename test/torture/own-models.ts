import { existsSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openSqlite } from "../../src/sqlite.js";
import { main as bulkgen, children, makePlace, type Place, startProcess } from "../e2e/process.js";
import { chance } from "../sim/chance.js";
import { ComfyUi } from "../upstreams/comfyui.js";
import { OpenAiUpstream } from "../upstreams/openai.js";
import { pause } from "./kill.js";

/**
 * The service of a models file inside the command, killed at random together with it, until all rows are archived. Its jobs go to
 * a ComfyUI, which knows a lost job by its id, and to a vendor that knows none. Judged by their books: no prompt is executed
 * twice, no answer that was lost is told as a failure, and what is in doubt at the end is just what may have been lost.
 *
 *   --kills N   so many processes at least are killed, in as many rounds as that takes
 *   --seed S    from that seed on
 */
const { values } = parseArgs({
  options: { kills: { type: "string", default: "20" }, seed: { type: "string", default: "1" } },
});
const rows = 10;
const workflow = resolve("test", "providers", "workflows", "text-to-image.json");
const hasJobs = "select 1 from sqlite_master where name = 'jobs'";
const unknownAtVendor =
  "select count(*) as jobs from jobs join tasks on tasks.id = task_id where stage = 'unknown' and tasks.model = 'hero'";
const tally = { rounds: 0, kills: 0, archived: 0, inDoubt: 0, violations: 0 };

async function round(seed: number): Promise<void> {
  const lot = chance(seed, "own models");
  const house = await new ComfyUi().listen();
  const vendor = await new OpenAiUpstream().start();
  const place = makePlace("torture-own");
  const env = { ...place.env, VENDOR_KEY: vendor.key };
  try {
    place.write("flow.json", readFileSync(workflow));
    place.write(
      "models.yaml",
      `providers:
  house: { kind: comfyui, base_url: "${house.address}", concurrency: 2 }
  vendor: { kind: openai, base_url: "${vendor.url}/v1", key_env: VENDOR_KEY, concurrency: 2 }
models:
  - { key: style, provider: house, category: image, credits: 1, workflow: flow.json, bind: { prompt: 6.text, seed: 3.seed } }
  - { key: hero, provider: vendor, category: image, credits: 4, request: { model: gpt-image-2 } }
`,
    );
    const lines = Array.from(
      { length: rows },
      (_, row) => `r${row},row ${row},${row % 2 ? "style" : "hero"}\n`,
    );
    place.write("set.csv", `id,prompt,model\n${lines.join("")}`);
    const words = ["run", "set.csv", "--models", "models.yaml", "--yes", "--quiet"];
    const start = (args: string[]) =>
      startProcess(process.execPath, [bulkgen, ...args], { cwd: place.folder, env }, "ignore");
    await start(["trust", "--models", "models.yaml", "--yes"]).ended;
    for (let kill = lot.whole(2, 5); kill > 0; kill--) {
      if (lot.is(0.3)) house.trouble["POST /prompt"] = "drop";
      const running = start(words);
      const isDone = running.ended.then(() => true);
      const ended = await Promise.race([isDone, pause(lot.whole(50, 2_500)).then(() => false)]);
      delete house.trouble["POST /prompt"];
      if (ended) break;
      running.signal("SIGKILL");
      await running.ended;
      tally.kills++;
    }
    // What only a person can settle stays processing; everything else is made.
    const last = start(words);
    let isOver = false;
    void last.ended.then(() => {
      isOver = true;
    });
    while (!isOver && madeIn(place).size + inDoubtIn(place) < rows) await pause(200);
    last.signal("SIGTERM");
    await last.ended;
    judge(seed, house, vendor, place);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    await house.stop();
    await vendor.stop();
    rmSync(place.root, { recursive: true, force: true });
  }
}

function judge(seed: number, house: ComfyUi, vendor: OpenAiUpstream, place: Place): void {
  const wrong = (what: string) => {
    tally.violations++;
    console.error(`seed ${seed}: ${what}`);
  };
  const made = madeIn(place);
  tally.archived += made.size;
  for (let row = 0; row < rows; row++) {
    const prompt = `row ${row}`;
    const times = row % 2 ? timesAt(house, prompt) : vendor.times(prompt);
    if (times > 1) wrong(`${prompt} was executed ${times} times`);
    if (made.has(`r${row}`)) continue;
    tally.inDoubt++;
    // A machine that knows jobs by their ids leaves nothing in doubt.
    if (row % 2) wrong(`${prompt} was not made, though its machine knows`);
  }
}

/** The rows that are archived. */
function madeIn(place: Place): Set<string> {
  return new Set(place.files().flatMap((file) => /here\/outputs\/.*\/(r\d+)\.png$/.exec(file)?.[1] ?? []));
}

/** How many jobs wait for a person's word: those of the vendor whose answer is lost. The machine finds its own again. */
function inDoubtIn(place: Place): number {
  const file = join(place.folder, ".bulkgen", "service", "state.db");
  if (!existsSync(file)) return 0;
  const db = openSqlite(file, { readonly: true });
  try {
    // A process may be killed while it makes its tables, or in a transaction: the next one ends what it began.
    if (db.prepare(hasJobs).get() === undefined) return 0;
    return (db.prepare(unknownAtVendor).get() as { jobs: number }).jobs;
  } catch (error) {
    if ((error as { code?: string }).code === "SQLITE_READONLY_ROLLBACK") return 0;
    throw error;
  } finally {
    db.close();
  }
}

function timesAt(house: ComfyUi, prompt: string): number {
  return house.ledger.filter(({ workflow }) => workflow["6"]?.inputs["text"] === prompt).length;
}

for (let seed = Number(values.seed); tally.kills < Number(values.kills); seed++) {
  tally.rounds++;
  await round(seed);
}
console.log(JSON.stringify(tally));
process.exitCode = tally.violations === 0 ? 0 : 1;
