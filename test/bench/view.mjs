/**
 * What the live view costs: the processor time of a whole `bulkgen run` that shows it, and of one that prints lines to a
 * pipe, as a multiple of the same run with --quiet; and that of `status --watch` beside a run, as a share of the run's time.
 * One drawing is measured alone too, because what it costs is less than two runs of the same kind differ by. The aim is less than 2 % each. The runs take turns within the same minutes; medians. With `perf` on the PATH they are
 * compared by the instructions of the process as well, which a busy machine changes less. The service is that of the
 * bench of throughput, a process of its own. Needs the build in dist/.
 *
 *   node test/bench/view.mjs [--short] [--items N]
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  environmentOf,
  main,
  median,
  newFolder,
  numberOf,
  short,
  startService,
  writePictures,
} from "./setup.mjs";

const items = numberOf("--items", short ? 20 : 2_000);
const rounds = short ? 1 : 5;
const ratioMax = 1.02;
const drawings = short ? 50 : 2_000;
/** Where perf is there, and the machine lets it count. */
const hasPerf = /^\d/m.test(`${spawnSync("perf", ["stat", "-x,", "-e", "instructions:u", "true"]).stderr}`);

/** Has a process take its stderr and stdout for a terminal, and tell at its end what it used. */
const preload = (isTerminal) =>
  `data:text/javascript,${encodeURIComponent(`
    import { writeFileSync } from "node:fs";
    for (const stream of ${isTerminal} ? [process.stderr, process.stdout] : [])
      Object.assign(stream, { isTTY: true, columns: 120, rows: 40 });
    process.on("exit", () => writeFileSync(process.env.USED, JSON.stringify(process.cpuUsage())));
  `)}`;

/** With --json none of them prints the plan, which is no part of the view. */
const ways = {
  quiet: { flags: ["--quiet", "--json"], isTerminal: false },
  live: { flags: ["--json"], isTerminal: true },
  piped: { flags: ["--json"], isTerminal: false },
};

const events = { flags: ["--quiet"], isTerminal: false };
const terminal = { flags: [], isTerminal: true };
let started = 0;

const url = await startService();
const folder = newFolder("view");
const found = {};
for (let round = 0; round < rounds; round++)
  for (const [name, way] of Object.entries(ways)) {
    const { cpuMs, instructions } = await runOnce(join(folder, `${name}-${round}`), way);
    found[name] ??= { cpuMs: [], instructions: [] };
    found[name].cpuMs.push(cpuMs);
    found[name].instructions.push(instructions);
  }
report(await watched(join(folder, "watched")), await drawing());

/** One run in a place of its own. */
async function runOnce(place, way) {
  const { ended, used } = begin(
    place,
    ["run", "sheet.csv", "--yes", "--lanes", "32", "--downloads", "16"],
    way,
  );
  await ended;
  return used();
}

/** The processor time of `status --watch` for each second of the run that it watches. */
async function watched(place) {
  const run = begin(place, ["run", "sheet.csv", "--yes", "--lanes", "32", "--events"], events);
  await once(run.child.stdout, "data");
  const began = process.hrtime.bigint();
  const watch = begin(place, ["status", "--watch"], terminal);
  await Promise.all([run.ended, watch.ended]);
  const status = begin(place, ["status"], terminal);
  await status.ended;
  const ms = Number(process.hrtime.bigint() - began) / 1e6;
  return { ms, cpuMs: watch.used().cpuMs - status.used().cpuMs };
}

function begin(place, words, { flags, isTerminal }) {
  writePictures(join(place, "sheet.csv"), items);
  const file = join(place, `used-${started++}`);
  const counter = hasPerf ? ["perf", "stat", "-x,", "-e", "instructions:u", "-o", `${file}.perf`] : [];
  const command = [process.execPath, "--import", preload(isTerminal), main, ...words, ...flags];
  const [program, ...args] = [...counter, ...command];
  const child = spawn(program, args, {
    cwd: place,
    env: { ...environmentOf(place, url), CI: "", TERM: "xterm", USED: file },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let errors = "";
  child.stderr.on("data", (text) => {
    errors = (errors + text).slice(-2_000);
  });
  child.stdout.resume();
  const ended = once(child, "exit").then(([code]) => {
    if (code !== 0) throw new Error(`${words.join(" ")} ended with ${code}: ${errors}`);
  });
  const used = () => {
    const { user, system } = JSON.parse(readFileSync(file, "utf8"));
    const counted = hasPerf ? Number(/^(\d+),/m.exec(readFileSync(`${file}.perf`, "utf8"))?.[1]) : null;
    return { cpuMs: (user + system) / 1_000, instructions: counted };
  };
  return { child, ended, used };
}

/** Processor time (ms) of one drawing in which all lines have changed: the layout, log-update, and the write. */
async function drawing() {
  const { liveView } = await import("../../dist/report/live-view.js");
  const { openLiveRegion } = await import("../../dist/cli/output/live-region.js");
  const window = { limit: 60, used: 31, nextFreeAt: 0, nextReleaseAt: 0 };
  const states = { archived: 0, failed: 4, held: 1, unknown: 0, overdue: 0, processing: 7, submitting: 1 };
  const facts = {
    ...{ run: 3, job: "autumn", folder: "/srv/outputs/autumn", cwd: "/srv", now: 0, forecastMs: 1e9 },
    counts: { ...states, ready: 2, planned: 6, blocked: 0, dropped: 0 },
    quota: { minute: window, day: window, releases: [], pacing: {}, owedElsewhere: 0, blockedUntil: null },
    ...{
      reason: null,
      stops: [],
      spent: 0,
      cap: 1e9,
    },
    trouble: [
      { state: "failed", kind: "provider", note: "no capacity ".repeat(20), items: 4, rowIds: ["a"] },
    ],
    awaiting: { items: 2, rowIds: ["b", "c"] },
  };
  const region = openLiveRegion({ columns: 120, rows: 40, write: () => true });
  const draw = (number) => {
    const counts = { ...facts.counts, archived: number };
    const now = { elapsedMs: number * 1_000, spent: number * 1e6, newestFile: `cup-${number}.png` };
    region.show(liveView({ ...facts, ...now, counts }, { width: 119, height: 39, colour: true }));
  };
  for (let number = 0; number < drawings / 10; number++) draw(number);
  const before = process.cpuUsage();
  for (let number = 0; number < drawings; number++) draw(number);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000 / drawings;
}

function report(watch, drawMs) {
  console.log(
    `${items} items, 32 lanes, medians of ${rounds}; with --quiet ${median(found.quiet.cpuMs).toFixed(0)} ms of processor`,
  );
  const ratios = [];
  for (const name of ["live", "piped"]) {
    const ratio = (what) => median(found[name][what]) / median(found.quiet[what]);
    const byInstructions = hasPerf ? `, ${ratio("instructions").toFixed(4)} × its instructions` : "";
    console.log(
      `${name.padEnd(6)} ${ratio("cpuMs").toFixed(3)} × the processor time of --quiet${byInstructions}`,
    );
    ratios.push([name, hasPerf ? ratio("instructions") : ratio("cpuMs")]);
  }
  const drawn = `${drawMs.toFixed(2)} ms of processor`;
  console.log(`one drawing: ${drawn}, twice a second ${((2 * drawMs) / 10).toFixed(2)} % of a core`);
  const share = watch.cpuMs / watch.ms;
  console.log(`status --watch, beside a run: ${(100 * share).toFixed(2)} % of the run's time`);
  for (const [name, ratio] of [...ratios, ["status --watch", 1 + share]])
    if (ratio >= ratioMax)
      console.error(`view: ${name} costs ${(100 * (ratio - 1)).toFixed(1)} %, the aim is less than 2 %`);
}
