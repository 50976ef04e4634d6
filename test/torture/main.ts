import { parseArgs } from "node:util";
import { children } from "../e2e/process.js";
import { pointNames } from "./points.js";
import { killsMax, round } from "./round.js";
import { play, type Scene } from "./scene.js";
import { diskStages } from "./scenes/disk-stages.js";
import { doubleStart } from "./scenes/double-start.js";
import { fsyncOrder } from "./scenes/fsync-order.js";
import { fullDisks } from "./scenes/full-disk.js";
import { pauses } from "./scenes/pauses.js";
import { twoWorkspaces } from "./scenes/two-workspaces.js";
import { Tally } from "./tally.js";

/**
 * The built command is killed, stopped, started twice and run on full disks, and judged by what the service has on
 * record and what lies in the archive. Exit code 1 when a promise was broken.
 *
 *   --kills N     so many kills at least (0: the scenes alone)
 *   --seed S      from that seed on; `--seed S --kills 1` plays one round again
 *   --parallel N  rounds at once
 *   --lanes N     rounds with so many lanes alone (default: some with 16, the others with 1 to 4)
 *   --scenes      each scene too, and a point that no process ever ended at counts as a violation where there were
 *                 kills enough (default: yes; --no-scenes)
 */
const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
    parallel: { type: "string", default: "3" },
    lanes: { type: "string" },
    scenes: { type: "boolean", default: true },
  },
  allowNegative: true,
});

/** Kills after which every named point must have ended a process. */
const killsForEveryPoint = 300;
/** And after so many, one has ended at some commit. */
const killsForCommits = 40;

const first = whole("seed", values.seed);
const kills = whole("kills", values.kills);
const lanes = values.lanes === undefined ? null : whole("lanes", values.lanes);
const tally = new Tally();
const lines: string[] = [];
const began = performance.now();
process.once("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => process.exit(130));

const scenes: readonly Scene[] = values.scenes
  ? [...fullDisks.toReversed(), diskStages, fsyncOrder, pauses, doubleStart, twoWorkspaces]
  : [];
await Promise.all([playScenes(), playRounds()]);
report();

/** Beside the rounds: they wait more than they work. */
async function playScenes(): Promise<void> {
  const waiting = [...scenes];
  const hand = async () => {
    for (let scene = waiting.shift(); scene !== undefined; scene = waiting.shift()) await playScene(scene);
  };
  await Promise.all([hand(), hand()]);
}

async function playScene(scene: Scene): Promise<void> {
  const { isPlayed = true, facts, violations } = await play(scene, first);
  const outcome = violations.length > 0 ? "BROKEN" : isPlayed ? "held" : "NOT PLAYED";
  lines.push(`${scene.name.padEnd(25)}${outcome}: ${facts}`);
  for (const violation of violations) tally.violations.add(`${scene.name}: ${violation}`);
}

async function playRounds(): Promise<void> {
  let seed = first;
  let underWay = 0;
  const hand = async () => {
    // Items in flight may turn out to suffice.
    while (tally.kills + underWay * killsMax < kills) {
      underWay++;
      await round(seed++, tally, lanes);
      underWay--;
      if (process.stderr.isTTY) process.stderr.write(`${tally.kills}/${kills} kills\n`);
    }
  };
  await Promise.all(Array.from({ length: whole("parallel", values.parallel) }, hand));
}

function report(): void {
  if (tally.kills >= killsForEveryPoint)
    for (const point of tally.unreached) tally.violations.add(`no process ever ended at ${point}`);
  const reachedCommits = pointNames.filter(
    (name) => name.includes("commit") && !tally.unreached.includes(name),
  );
  if (tally.kills >= killsForCommits && reachedCommits.length === 0)
    tally.violations.add("no process ever ended at a commit");
  const seconds = Math.round((performance.now() - began) / 1000);
  const violations = [...tally.violations];
  console.log([`torture, seed ${first}, ${seconds} s`, ...tally.lines(), ...lines].join("\n"));
  console.log(
    [`violations        ${violations.length}`, ...violations.map((line) => `  ${line}`)].join("\n"),
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
}

function whole(name: string, text: string): number {
  if (/^\d+$/.test(text)) return Number(text);
  console.error(`--${name}: expected a whole number, got ${JSON.stringify(text)}`);
  process.exit(2);
}
