/**
 * What commands cost to start, as a multiple of what Node itself costs: the processor time of the whole process with its
 * threads, and for all but the run how long they take. All are run in turn within the same minute, so that a busy
 * machine slows all of them; medians, because a pause of the machine is no property of the program.
 *
 *   node test/bench/startup.mjs [--short] [--json]
 */
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import { join } from "node:path";
import { main, median, newFolder, short, writeSheet } from "./setup.mjs";

const rounds = short ? 1 : 15;

/** The most that commands should cost, as a multiple of Node's own start. */
const ratioMax = { "bulkgen --help": 2, "bulkgen status": 2, "bulkgen run --sandbox": 7 };
/** How soon a plan of 100 rows should be there on a quiet machine, in milliseconds by the clock. */
const planMsMax = 500;

const quick = {
  "node -e 0": ["-e", "0"],
  "bulkgen --help": [main, "--help"],
  "bulkgen status": [main, "status"],
};
/** These ask a service, which with `--sandbox` is within their own process; the run makes, fetches and checks one picture. */
const plans = {
  "bulkgen plan --sandbox": [main, "plan", "sheet.csv", "--sandbox"],
  "the same, 100 rows": [main, "plan", "hundred.csv", "--sandbox"],
};
const whole = { "bulkgen run --sandbox": [main, "run", "sheet.csv", "--sandbox", "--yes"] };
const sheet = (path, rows) =>
  writeSheet(path, "model,prompt", rows, (n) => `aurora-image-mini,a red fox ${n}`);

/** Has a process tell at its end, on a pipe of its own, what it used. */
const telling = `data:text/javascript,${encodeURIComponent(
  'import { writeSync } from "node:fs"; process.on("exit", () => writeSync(3, JSON.stringify(process.cpuUsage())));',
)}`;

const places = newFolder("startup");
report(measure());

function measure() {
  const commands = { ...quick, ...plans, ...whole };
  const found = Object.fromEntries(Object.keys(commands).map((name) => [name, []]));
  // The first round warms the disk cache and is not counted; the short form goes without.
  for (let round = short ? 1 : 0; round <= rounds; round++) {
    for (const [name, args] of Object.entries(commands)) {
      const used = once(name, args, join(places, `${round} ${name}`));
      if (round > 0) found[name].push(used);
    }
  }
  return Object.entries(found).map(([name, list]) => ({
    name,
    cpuMs: median(list.map((used) => used.cpuMs)),
    // A run waits for the service most of its time.
    ms: name in whole ? null : median(list.map((used) => used.ms)),
  }));
}

/** In a folder of its own, so that no round finds what another left. */
function once(name, args, cwd) {
  sheet(join(cwd, "sheet.csv"), 1);
  sheet(join(cwd, "hundred.csv"), 100);
  const began = process.hrtime.bigint();
  const { status, stderr, output } = spawnSync(process.execPath, ["--import", telling, ...args], {
    cwd,
    env: { ...process.env, XDG_STATE_HOME: join(cwd, "state") },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const ms = Number(process.hrtime.bigint() - began) / 1e6;
  if (status !== 0) {
    console.error(`startup: ${name} ended with ${status}: ${stderr}`);
    process.exit(1);
  }
  const { user, system } = JSON.parse(output[3]);
  return { ms, cpuMs: (user + system) / 1000 };
}

function report(measured) {
  const bare = measured[0];
  const rows = measured.map((row) => ({
    ...row,
    cpuRatio: row.cpuMs / bare.cpuMs,
    ratio: row.ms === null ? null : row.ms / bare.ms,
  }));
  if (process.argv.includes("--json")) {
    console.log(JSON.stringify({ node: process.version, cpus: cpus().length, rounds, rows }));
  } else {
    console.log(`start-up on Node ${process.version}, ${cpus().length} cores, median of ${rounds} rounds`);
    console.log(
      `${"".padEnd(24)}${"processor".padStart(12)}${"ratio".padStart(9)}${"time".padStart(9)}${"ratio".padStart(9)}`,
    );
    for (const { name, cpuMs, cpuRatio, ms, ratio } of rows) {
      console.log(
        `${name.padEnd(24)}${inMs(cpuMs).padStart(12)}${times(cpuRatio)}${inMs(ms).padStart(9)}${times(ratio)}`,
      );
    }
  }
  for (const { name, cpuRatio, ms } of rows) {
    const most = ratioMax[name];
    if (cpuRatio >= most)
      console.error(`startup: ${name} costs ${cpuRatio.toFixed(2)} times a bare start, the aim is ${most}`);
    if (name in plans && ms >= planMsMax)
      console.error(
        `startup: ${name} takes ${ms.toFixed(0)} ms, the aim is ${planMsMax} ms on a quiet machine`,
      );
  }
}

function inMs(ms) {
  return ms === null ? "" : `${ms.toFixed(0)} ms`;
}

function times(ratio) {
  return (ratio === null ? "" : `${ratio.toFixed(2)} ×`).padStart(9);
}
