import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
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
const tally = { rounds: 0, kills: 0, archived: 0, inDoubt: 0, violations: 0 };

async function round(seed: number): Promise<void> {
  const lot = chance(seed, "own models");
  const house = await new ComfyUi().listen();
  const vendor = await new OpenAiUpstream().start();
  const place = makePlace("torture-own");
  const env = { ...place.env, VENDOR_KEY: vendor.key };
  try {
    place.write("flow.json", JSON.stringify(flow));
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
      const ended = await Promise.race([isDone, pause(lot.whole(300, 2_500)).then(() => false)]);
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

/** How many jobs wait for a person's word. */
function inDoubtIn(place: Place): number {
  const file = join(place.folder, ".bulkgen", "service", "state.db");
  if (!existsSync(file)) return 0;
  const db = openSqlite(file, { readonly: true });
  try {
    return (db.prepare("select count(*) as jobs from jobs where stage = 'unknown'").get() as { jobs: number })
      .jobs;
  } finally {
    db.close();
  }
}

function timesAt(house: ComfyUi, prompt: string): number {
  return house.ledger.filter(({ workflow }) => workflow["6"]?.inputs["text"] === prompt).length;
}

const flow = {
  "3": {
    class_type: "KSampler",
    inputs: {
      seed: 1,
      steps: 20,
      cfg: 7,
      sampler_name: "euler",
      scheduler: "normal",
      denoise: 1,
      model: ["4", 0],
      positive: ["6", 0],
      negative: ["7", 0],
      latent_image: ["5", 0],
    },
  },
  "4": { class_type: "CheckpointLoaderSimple", inputs: { ckpt_name: "v1-5-pruned-emaonly.safetensors" } },
  "5": { class_type: "EmptyLatentImage", inputs: { width: 512, height: 512, batch_size: 1 } },
  "6": { class_type: "CLIPTextEncode", inputs: { text: "x", clip: ["4", 1] } },
  "7": { class_type: "CLIPTextEncode", inputs: { text: "", clip: ["4", 1] } },
  "8": { class_type: "VAEDecode", inputs: { samples: ["3", 0], vae: ["4", 2] } },
  "9": { class_type: "SaveImage", inputs: { filename_prefix: "x", images: ["8", 0] } },
};

for (let seed = Number(values.seed); tally.kills < Number(values.kills); seed++) {
  tally.rounds++;
  await round(seed);
}
console.log(JSON.stringify(tally));
process.exitCode = tally.violations === 0 ? 0 : 1;
