import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { badEnd, Runner } from "../runner.js";
import type { Played, Scene, Stage } from "../scene.js";
import { Service } from "../service.js";
import { judgeTrace } from "../trace.js";

/** P1, P4, P13: the order of writes and syncs, as the kernel sees it through strace. */
export const fsyncOrder: Scene = { name: "order of fsyncs", play: playFsyncOrder };

const calls = "write,writev,pwrite64,pwritev,pwritev2,sendto,sendmsg,fsync,fdatasync,link,linkat";

async function playFsyncOrder({ place, later }: Stage): Promise<Played> {
  const { status } = spawnSync("strace", ["-V"]);
  if (status !== 0) return { isPlayed: false, facts: "there is no strace on this machine", violations: [] };
  const service = await Service.start(place);
  later(() => service.kill());
  const items = 6;
  // With more lanes or downloads, another item's write may rightly be in progress when a request is sent.
  const runner = new Runner(place, { folder: place.folder, service, items, lanes: 1 });
  const file = join(place.root, "trace.txt");
  const end = await runner.under(
    ["strace", "-f", "-y", "-qq", "-s", "64", "-e", `trace=${calls}`, "-o", file],
    ["run", "set.csv", "--yes", "--lanes", "1", "--downloads", "1"],
  ).ended;
  const { posts, writes, links, violations } = judgeTrace(readFileSync(file, "utf8"));
  if (posts !== items) violations.push(`${posts} paid requests were seen for ${items} items`);
  if (links !== items) violations.push(`${links} files were seen to get their names for ${items} items`);
  const counted = [...writes].map(([name, count]) => `${name} ${count}`).join(", ");
  return {
    facts: `before each of ${posts} paid requests every write was synced (${counted}), before each of ${links} names its content`,
    violations: [...badEnd("a run under strace", end), ...violations],
  };
}
