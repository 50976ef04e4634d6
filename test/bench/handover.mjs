/**
 * What packing the final set takes: `export --final --zip --files-only` of many files, beside `zip -0` of the same files (`tar` where
 * there is no zip). Needs the build in dist/.
 *
 *   node test/bench/handover.mjs [--short] [--items N] [--kilobytes N]
 */

import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { makeBigWorkspace } from "./big-workspace.mjs";
import { ended, newFolder, numberOf, short, start, startService } from "./setup.mjs";

const Sqlite = createRequire(import.meta.url)("better-sqlite3");
const items = numberOf("--items", short ? 200 : 5_000);
const kilobytes = numberOf("--kilobytes", 200);

const url = await startService();
const folder = newFolder("handover");
await makeBigWorkspace({ folder, url, archived: items });
const set = join(folder, "outputs/sheet");
const files = writeFiles();
const hasZip = spawnSync("zip", ["-v"]).status === 0;
console.log(`final set of ${items} files of ${kilobytes} kB, Node ${process.version}`);
const [ours, theirs] = [[], []];
// In turn, so that both find the files as warm.
for (let round = 0; round < 3; round++) {
  ours.push(
    await secondsOf("ours.zip", () =>
      ended(start(folder, url, ["export", "--final", "--zip", "ours.zip", "--files-only", "--quiet"])),
    ),
  );
  theirs.push(await secondsOf("theirs.zip", bare));
}
const [our, their] = [ours, theirs].map((all) => all.toSorted((a, b) => a - b)[1]);
console.log(`export --final --zip  ${our.toFixed(2)} s`);
console.log(`${hasZip ? "zip -0" : "tar"}  ${their.toFixed(2)} s; ${(their / our).toFixed(2)} of its speed`);

async function secondsOf(name, work) {
  const began = performance.now();
  await work();
  const seconds = (performance.now() - began) / 1_000;
  if (statSync(join(folder, name)).size < items * kilobytes * 1_000) throw new Error(`${name} lacks files`);
  rmSync(join(folder, name));
  return seconds;
}

/** Media do not compress, and neither does noise. */
function writeFiles() {
  const noise = randomBytes(kilobytes * 1_000);
  const db = new Sqlite(join(folder, ".bulkgen/state.db"));
  db.prepare("UPDATE outputs SET bytes = ?").run(noise.length);
  const found = db.prepare("SELECT file FROM outputs ORDER BY item_id").pluck().all();
  db.close();
  for (const [index, file] of found.entries()) {
    noise.writeUInt32LE(index);
    writeFileSync(join(set, file), noise);
  }
  return found;
}

async function bare() {
  const names = `${files.join("\n")}\n`;
  const [command, ...words] = hasZip
    ? ["zip", "-0", "-q", "-@", join(folder, "theirs.zip")]
    : ["tar", "-cf", join(folder, "theirs.zip"), "-T", "-"];
  const { status, stderr } = spawnSync(command, words, { cwd: set, input: names });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
}
