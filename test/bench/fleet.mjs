/**
 * Items a second of a fleet where nothing limits (see throughput.mjs for the service and its items): a run whose state is in
 * PostgreSQL, with 1, 2 and 4 workers that download, against the same run with its state in files and no workers. Then what an
 * item costs with 1,000 and with 100,000 items of the run waiting. The database keeps nothing safe, as that of the
 * tests. Everything is a process of its own. Needs the build in dist/.
 *
 *   node test/bench/fleet.mjs [--short] [--items N] [--lanes N] [--rounds N] [--only workers|waiting] [--file-ms N]
 *
 * With `--file-ms` the service takes that long to begin each file, so that the workers are what limits.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startOwnPostgres } from "../../scripts/postgres.mjs";
import {
  environmentOf,
  main,
  median,
  newFolder,
  numberOf,
  short,
  startService,
  wordOf,
  writePictures,
} from "./setup.mjs";

const items = numberOf("--items", short ? 200 : 2_000);
const lanes = numberOf("--lanes", 32);
const rounds = numberOf("--rounds", short ? 1 : 3);
const fileMs = numberOf("--file-ms", 0);
const only = wordOf("--only", null);
const [few, many] = short ? [200, 2_000] : [1_000, 100_000];
const made = short ? 100 : 1_000;

const folder = newFolder("fleet");
const url = await startService("throughput", fileMs);
const postgres = await startOwnPostgres();
let places = 0;

/** A workspace and what its commands are told; in a database if `shared`. */
function newPlace(shared) {
  const root = join(folder, `${++places}`);
  mkdirSync(root);
  const env = {
    ...environmentOf(root, url),
    ...(shared ? { BULKGEN_DATABASE_URL: `${postgres.url}?schema=bench_${places}` } : {}),
  };
  return {
    root,
    start: (words, stdout) =>
      spawn(process.execPath, [main, ...words], { cwd: root, env, stdio: ["ignore", stdout, "pipe"] }),
  };
}

/** Items a second from the first submit to the last file. The sheet may have more rows than are made. */
async function rateOf({ workers, rows, makes }) {
  const place = newPlace(workers > 0);
  writePictures(join(place.root, "sheet.csv"), rows);
  const helpers = Array.from({ length: workers }, () =>
    place.start(["worker", "--only", "archive", "--downloads", "16"], "ignore"),
  );
  await Promise.all(helpers.map(ready));
  const words = ["run", "sheet.csv", "--yes", "--events", "--lanes", `${lanes}`, "--downloads", "16"];
  const capped = makes < rows ? ["--max-credits", `${makes}`] : [];
  const run = place.start([...words, ...(workers > 0 ? ["--no-work"] : []), ...capped], "pipe");
  run.stderr.resume();
  let [first, last, archived] = [null, 0, 0];
  for await (const line of createInterface({ input: run.stdout })) {
    const { event, time } = JSON.parse(line);
    if (event === "submitted") first ??= Date.parse(time);
    if (event !== "archived") continue;
    archived++;
    last = Date.parse(time);
  }
  for (const helper of helpers) helper.kill("SIGTERM");
  await Promise.all(helpers.map((helper) => once(helper, "exit")));
  if (archived !== makes) throw new Error(`archived ${archived} of ${makes}`);
  return makes / ((last - first) / 1_000);
}

async function ready(worker) {
  for await (const line of createInterface({ input: worker.stderr }))
    if (line.includes("is ready")) return worker.stderr.resume();
  throw new Error("a worker ended");
}

function shown(rate) {
  return rate.toFixed(rate < 20 ? 1 : 0);
}

/** Cases take turns; their medians. */
async function ratesOf(cases) {
  const rates = cases.map(() => []);
  for (let round = 0; round < rounds; round++)
    for (const [index, each] of cases.entries()) rates[index].push(await rateOf(each));
  return rates.map(median);
}

async function compareWorkers() {
  const counts = [0, 1, 2, 4];
  const rates = await ratesOf(counts.map((workers) => ({ workers, rows: items, makes: items })));
  console.log(
    `${items} items of 1 kB${fileMs > 0 ? `, each after ${fileMs} ms` : ""}, ${lanes} lanes; items a second by the clock, medians of ${rounds}`,
  );
  for (const [index, workers] of counts.entries()) {
    const name =
      workers === 0
        ? "state in files, no workers"
        : `PostgreSQL, ${workers} worker${workers === 1 ? "" : "s"}`;
    console.log(
      `${name.padEnd(28)} ${shown(rates[index]).padStart(5)}/s  ${(rates[index] / rates[0]).toFixed(2)} of the first`,
    );
  }
}

async function compareWaiting() {
  const waits = await ratesOf([few, many].map((rows) => ({ workers: 1, rows, makes: made })));
  console.log(`${made} items of a run in PostgreSQL with one worker, of ${few} and of ${many} that wait`);
  console.log(
    `${waits.map((rate) => `${shown(rate)}/s`).join(" and ")}: an item costs ${(waits[0] / waits[1]).toFixed(2)} times as much`,
  );
}

try {
  if (only !== "waiting") await compareWorkers();
  if (only !== "workers") await compareWaiting();
} finally {
  await postgres.stop();
}
