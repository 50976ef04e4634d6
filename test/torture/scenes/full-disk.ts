import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { chance } from "../../sim/chance.js";
import { Auditor } from "../auditor.js";
import { judge, untilDone } from "../judge.js";
import { pause, told } from "../kill.js";
import { badEnd, Runner, toldBy } from "../runner.js";
import type { Played, Scene, Stage } from "../scene.js";
import { Service } from "../service.js";

/**
 * P17: a file system is filled to the last byte while paid requests and downloads are in flight, and freed again. No id
 * and no finished file may be lost, so nothing may be in doubt after.
 */
export const fullDisks: readonly Scene[] = (["workspace", "account data", "outputs"] as const).map(
  (what) => ({
    name: `full disk: ${what}`,
    play: (stage) => playFullDisk(stage, what),
  }),
);

/** The archive keeps 64 MB free for the state, so a smaller one would be full from the beginning. */
const diskBytes = 96 * 1024 * 1024;

async function playFullDisk({ place, seed, later }: Stage, what: string): Promise<Played> {
  const random = chance(seed, "full disk", what);
  const small = join(place.root, "small");
  mkdirSync(small);
  const refusal = mountSmall(small);
  if (refusal !== null)
    return { isPlayed: false, facts: `mounting is refused (${refusal}); ${wayOut}`, violations: [] };
  const unmount = () => spawnSync("umount", ["--lazy", small]);
  process.once("exit", unmount);
  later(() => process.off("exit", unmount));
  later(unmount);
  // Answers take their time, so that paid requests are in flight when the disk fills.
  const slow = { fault: { kind: "slow-answer" as const, delayMs: 150 }, on: ["generate" as const], rate: 1 };
  const service = await Service.start(place, { rules: [slow] });
  later(() => service.kill());
  const on = (those: string, name: string) => join(what === those ? small : place.root, name);
  const runner = new Runner(place, {
    folder: on("workspace", "here"),
    out: on("outputs", "outputs"),
    env: { XDG_STATE_HOME: on("account data", "state") },
    service,
    items: 12,
    lanes: 3,
  });
  const auditor = new Auditor({ rows: runner.rows, cap: null });
  const running = runner.run();
  const events = what === "outputs" ? random.whole(14, 22) : random.whole(2, 10);
  await told(running, events);
  await pause(random.whole(0, 120));
  const filler = join(small, "filler");
  const bytes = fill(filler);
  const ended = await Promise.race([running.ended, pause(random.whole(1_000, 3_000)).then(() => null)]);
  const violations = auditor.look(service.ledger(), runner.archive());
  rmSync(filler);
  violations.push(...badEnd("a run on a full disk", ended ?? (await running.ended)));
  // On its own disk, the last write of a run may be refused too.
  if (ended?.code === 8 && what !== "workspace" && (await runner.status())?.crashed)
    violations.push("R6: a run that ended in good order is shown as crashed");
  violations.push(...(await untilDone(runner, () => undefined)));
  const { trouble } = toldBy(await runner.status());
  for (const [row, state] of trouble) violations.push(`P17: ${row} is ${state} after the disk was full`);
  const judgement = await judge(service, runner, auditor, []);
  const how =
    ended === null ? "it waited and went on by itself" : `it ended with exit ${ended.code} and was resumed`;
  return {
    facts: `filled with ${bytes} bytes after ${events} events; ${how}: ${judgement.tasks} tasks, ${judgement.files} files`,
    violations: [...violations, ...judgement.violations],
  };
}

const wayOut = "run it as root, or under `unshare --user --map-root-user --mount`";

/** Null when it is mounted, else why not. */
function mountSmall(folder: string): string | null {
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${diskBytes}`, "tmpfs", folder], {
    encoding: "utf8",
  });
  if (mounted.status === 0) return null;
  return (mounted.error?.message ?? mounted.stderr).trim();
}

/** Writes until nothing more is taken; returns how much that was. */
function fill(path: string): number {
  writeFileSync(path, "");
  const handle = openSync(path, "a");
  let written = 0;
  try {
    for (const piece of [1024 * 1024, 4 * 1024, 512, 1])
      for (;;) {
        const taken = writeOrNothing(handle, Buffer.alloc(piece));
        written += taken;
        if (taken < piece) break;
      }
  } finally {
    closeSync(handle);
  }
  return written;
}

function writeOrNothing(handle: number, bytes: Uint8Array): number {
  try {
    return writeSync(handle, bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return 0;
    throw error;
  }
}
