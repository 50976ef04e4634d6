/**
 * The dashboard of a workspace with 100 runs and 100,000 items: the first paint and the time until the list of runs is
 * there, as a multiple of the same with one run of twenty items, in turn within the same minutes; medians. Then how soon the
 * page's stream tells of a change, and what is loaded at first. The aims: a first paint within 1 s, an event within 1 s,
 * less than 80 kB of JavaScript. Needs the build in dist/ and Chromium.
 *
 *   node test/bench/dashboard.mjs [--short] [--items N]
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { makeBigWorkspace } from "./big-workspace.mjs";
import { environmentOf, main, median, newFolder, numberOf, short, start, startService } from "./setup.mjs";

const Sqlite = createRequire(import.meta.url)("better-sqlite3");
const items = numberOf("--items", short ? 200 : 100_000);
const runs = 100;
const rounds = short ? 1 : 5;
const assets = fileURLToPath(new URL("../../dist/page/dashboard/assets/", import.meta.url));
const browserFile = process.env.CHROMIUM ?? "/usr/bin/chromium";

if (existsSync(browserFile)) await bench();
else console.log("no Chromium here: nothing was measured");

async function bench() {
  const url = await startService();
  const folder = newFolder("dashboard");
  const browser = await chromium.launch({ executablePath: browserFile, args: ["--no-sandbox"] });
  const served = [];
  try {
    const places = { small: join(folder, "small"), big: join(folder, "big") };
    await makeBigWorkspace({ folder: places.small, url, archived: 10, planned: 10 });
    const planned = Math.round(items / 10);
    await makeBigWorkspace({ folder: places.big, url, archived: items - planned, planned });
    spread(join(places.big, ".bulkgen", "state.db"));
    const links = {};
    for (const [name, place] of Object.entries(places)) {
      const { child, link } = await serve(place, url);
      served.push(child);
      links[name] = link;
    }
    const found = { small: [], big: [] };
    for (let round = 0; round < rounds; round++)
      for (const name of Object.keys(links)) found[name].push(await load(browser, links[name]));
    const heard = await hears(links.big, places.big, url);
    report(found, heard);
  } finally {
    await browser.close();
    for (const child of served) child.kill("SIGTERM");
  }
}

/** Spreads the items of the one run over a hundred. */
function spread(file) {
  const db = new Sqlite(file);
  const triggers = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all();
  const columns = db.prepare("SELECT name FROM pragma_table_info('runs') WHERE name <> 'id'").pluck().all();
  db.transaction(() => {
    for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`);
    const copy = db.prepare(`INSERT INTO runs (id, ${columns}) SELECT ?, ${columns} FROM runs WHERE id = 1`);
    for (let id = 2; id <= runs; id++) copy.run(id);
    db.exec(`UPDATE items SET run_id = 1 + id % ${runs};
      UPDATE attempts SET run_id = 1 + item_id % ${runs};
      DELETE FROM run_states;
      INSERT INTO run_states SELECT run_id, state, count(*) FROM items GROUP BY 1, 2;`);
    for (const { sql } of triggers) db.exec(sql);
  })();
  db.close();
}

async function serve(place, url) {
  const child = start(place, url, ["dashboard", "--json"], { stdout: "pipe" });
  const [line] = await once(child.stdout, "data");
  return { child, link: JSON.parse(line).link };
}

/** When a browser that has never seen the page paints it, and has the list of runs (ms). */
async function load(browser, link) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${link}`);
  await page.getByRole("link", { name: "sheet" }).first().waitFor();
  const times = await page.evaluate(() => ({
    listed: performance.now(),
    painted: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
  }));
  await context.close();
  return times;
}

/** Milliseconds from the end of a command that changed something to the event of it. */
async function hears(link, place, url) {
  const { origin, hash } = new URL(link);
  const answer = await fetch(`${origin}/api/events`, {
    headers: { authorization: `Bearer ${hash.replace("#token=", "")}` },
  });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  await reader.read();
  const { status } = spawnSync(process.execPath, [main, "pick", "first"], {
    cwd: place,
    env: environmentOf(place, url),
  });
  if (status !== 0) throw new Error(`pick ended with ${status}`);
  const ended = performance.now();
  await reader.read();
  const ms = performance.now() - ended;
  await reader.cancel();
  return ms;
}

function report({ small, big }, heard) {
  const line = (what, name) => {
    const [few, many] = [median(small.map((times) => times[name])), median(big.map((times) => times[name]))];
    console.log(
      `${what}: ${many.toFixed(0)} ms, ${(many / few).toFixed(2)} × that of one run (${few.toFixed(0)} ms)`,
    );
  };
  console.log(`${runs} runs, ${items} items, medians of ${rounds}`);
  line("first paint", "painted");
  line("runs listed", "listed");
  console.log(`an event is seen at most ${heard.toFixed(0)} ms after the command that caused it`);
  for (const first of [/^index.*\.js$/, /\.js$/]) {
    const files = readdirSync(assets).filter((name) => first.test(name));
    const bytes = files.reduce((sum, name) => sum + gzipSync(readFileSync(join(assets, name))).length, 0);
    console.log(
      `${(bytes / 1_000).toFixed(1)} kB of JavaScript, gzipped, in ${files.length} file${files.length === 1 ? "" : "s"}`,
    );
  }
}
