/**
 * How much longer the quick commands take to start than Node itself. All are run in turn within the same minute, so
 * that a busy machine slows all of them; medians, because a pause of the machine is no property of the program.
 *
 *   node test/bench/startup.mjs [--short] [--json]
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const rounds = process.argv.includes("--short") ? 7 : 25;
const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const main = join(root, "dist/cli/main.js");

/** The most that a command may take, as a multiple of Node's own start. */
const ratioMax = 3;

const commands = {
  "node -e 0": ["-e", "0"],
  "bulkgen --help": [main, "--help"],
  "bulkgen status": [main, "status"],
};

if (!existsSync(main)) {
  console.error("startup: dist/cli/main.js is missing; run `npm run build` first");
  process.exit(1);
}

const workspace = mkdtempSync(join(tmpdir(), "bulkgen-startup-"));
try {
  report(measure());
} finally {
  rmSync(workspace, { recursive: true, force: true });
}

function measure() {
  const times = Object.fromEntries(Object.keys(commands).map((name) => [name, []]));
  // The first round warms the disk cache and is not counted.
  for (let round = 0; round <= rounds; round++) {
    for (const [name, args] of Object.entries(commands)) {
      const ms = once(name, args);
      if (round > 0) times[name].push(ms);
    }
  }
  return Object.fromEntries(Object.entries(times).map(([name, list]) => [name, median(list)]));
}

function once(name, args) {
  const began = process.hrtime.bigint();
  const { status, stderr } = spawnSync(process.execPath, args, {
    cwd: workspace,
    env: { ...process.env, XDG_STATE_HOME: join(workspace, "state") },
    encoding: "utf8",
  });
  const ms = Number(process.hrtime.bigint() - began) / 1e6;
  if (status !== 0) {
    console.error(`startup: ${name} ended with ${status}: ${stderr}`);
    process.exit(1);
  }
  return ms;
}

function median(list) {
  const sorted = list.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return sorted.length % 2 === 1 ? sorted[Math.floor(middle)] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function report(medians) {
  const bare = medians["node -e 0"];
  const rows = Object.entries(medians).map(([name, ms]) => ({ name, ms, ratio: ms / bare }));
  if (process.argv.includes("--json")) {
    console.log(JSON.stringify({ node: process.version, cpus: cpus().length, rounds, rows }));
  } else {
    console.log(`start-up on Node ${process.version}, ${cpus().length} cores, median of ${rounds} rounds`);
    for (const { name, ms, ratio } of rows) {
      console.log(`${name.padEnd(16)}${ms.toFixed(0).padStart(5)} ms${ratio.toFixed(2).padStart(7)} ×`);
    }
  }
  const slow = rows.filter((row) => row.ratio >= ratioMax);
  for (const row of slow)
    console.error(
      `startup: ${row.name} takes ${row.ratio.toFixed(2)} times a bare start, the limit is ${ratioMax}`,
    );
}
