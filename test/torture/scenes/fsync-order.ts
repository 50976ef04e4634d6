import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { badEnd, Runner } from "../runner.js";
import type { Played, Scene, Stage } from "../scene.js";
import { Service } from "../service.js";
import { judgeTrace, type Order } from "../trace.js";

/** P1, P4, P13: the order of writes and syncs, as the kernel sees it through strace. */
export const fsyncOrder: Scene = { name: "order of fsyncs", play: playFsyncOrder };

const calls = "write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync,link,linkat";
const manyLanes = 16;
/** What stands for a paid request before it leaves. */
const synced = ["receipts.jsonl", "state.db-wal", "accounts.db-wal"];

async function playFsyncOrder({ place, later }: Stage): Promise<Played> {
  const { status } = spawnSync("strace", ["-V"]);
  if (status !== 0) return { isPlayed: false, facts: "there is no strace on this machine", violations: [] };
  const service = await Service.start(place);
  later(() => service.kill());

  const traced = async (name: string, items: number, lanes: number, node: readonly string[] = []) => {
    const folder = join(place.folder, name);
    mkdirSync(folder, { recursive: true });
    const runner = new Runner(place, { folder, service, items, lanes, subject: name });
    const file = join(place.root, `${name}.txt`);
    // The filter lets the kernel stop the process at these calls alone.
    const strace = ["-f", "--seccomp-bpf", "-y", "-qq", "-s", "100000", "-e", `trace=${calls}`, "-o", file];
    // With more downloads than one, another item's write may rightly be in progress when a file gets its name.
    const flags = ["--lanes", String(lanes), "--downloads", "1"];
    const end = await runner.under(["strace", ...strace], ["run", "set.csv", "--yes", ...flags], node).ended;
    const order = judgeTrace(readFileSync(file, "utf8"), lanes);
    const violations = badEnd(`${name} under strace`, end);
    if (order.posts !== items) violations.push(`${order.posts} paid requests were seen for ${items} items`);
    return { ...order, items, violations, broken: order.violations };
  };

  const alone = await traced("one-lane", 6, 1);
  const shared = await traced("many-lanes", 2 * manyLanes, manyLanes);
  const preload = pathToFileURL(join(import.meta.dirname, "..", "unsynced.js")).href;

  const violations = [alone, shared].flatMap((run) => [
    ...run.violations,
    ...run.broken,
    ...(run.links === run.items ? [] : [`${run.links} files got their names for ${run.items} items`]),
  ]);
  for (const name of synced) {
    const unsynced = await traced(`no-${name}`, manyLanes, manyLanes, [
      "--import",
      `${preload}?file=${name}`,
    ]);
    const found = unsynced.broken.filter((line) => line.includes(`its intent was synced in ${name}`)).length;
    violations.push(...unsynced.violations);
    if (found !== unsynced.posts)
      violations.push(`of ${unsynced.posts} requests without a synced ${name} ${found} were found`);
  }
  return {
    facts: [
      `one lane: ${counted(alone)}`,
      `${manyLanes} lanes: ${counted(shared)}`,
      `without the syncs of one of ${synced.join(", ")} all requests were found`,
    ].join("; "),
    violations,
  };
}

function counted({ posts, writes, links }: Order): string {
  const files = [...writes].map(([name, count]) => `${name} ${count}`).join(", ");
  return `before each of ${posts} paid requests what stands for it was synced (${files}), before each of ${links} names its content`;
}
