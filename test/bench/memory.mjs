/**
 * The memory of a long run, and whether its last items cost more than its first: a sheet goes from CSV to the archive's
 * index in a workspace that already has a million archived items, so that every table is large. Processor time of the
 * whole process an item, of the last tenth against the first. Needs the build in dist/ and Linux's /proc; the folder is
 * on tmpfs where there is one.
 *
 *   node test/bench/memory.mjs [--short] [--items N] [--before N]
 */
import { once } from "node:events";
import { join } from "node:path";
import { makeBigWorkspace } from "./big-workspace.mjs";
import { newFolder, numberOf, short, start, writePictures } from "./setup.mjs";
import { startWatchedService, usedBy } from "./watched-service.mjs";

const items = numberOf("--items", short ? 100 : 20_000);
const before = numberOf("--before", short ? 1_000 : 1_000_000);
const aims = { megabytes: 250, ratio: 1.2 };

const folder = newFolder("memory", { onTmpfs: true });
const service = await startWatchedService();
try {
  await makeBigWorkspace({ folder, url: service.url, archived: before });
  report(await measured());
} finally {
  service.stop();
}

async function measured() {
  writePictures(join(folder, "more.csv"), items, "m");
  const words = ["run", "more.csv", "--yes", "--quiet", "--lanes", "32", "--downloads", "16"];
  const child = start(folder, service.url, words);
  const tenth = items / 10;
  // Each task is polled once. The first tenth is the second one of the items: in the first, V8 compiles the code.
  const marks = [tenth, 2 * tenth, 9 * tenth, items];
  const found = [];
  let [polls, megabytes] = [0, 0];
  service.listen(({ url }) => {
    if (!url.includes("/task")) return;
    polls++;
    if (polls === marks[found.length]) found.push(usedBy(child.pid).cpuMs);
    if (polls % 100 === 0) ({ megabytes } = usedBy(child.pid));
  });
  const [code] = await once(child, "exit");
  if (code !== 0 || found.length < marks.length)
    throw new Error(`the run ended with ${code} after ${polls} polls`);
  const [firstMs, lastMs] = [(found[1] - found[0]) / tenth, (found[3] - found[2]) / tenth];
  return { firstMs, lastMs, megabytes };
}

function report({ firstMs, lastMs, megabytes }) {
  const ratio = lastMs / firstMs;
  console.log(`${items} items after ${before} archived ones, Node ${process.version}`);
  console.log(
    `second tenth ${firstMs.toFixed(2)} ms an item, last ${lastMs.toFixed(2)} ms: ${ratio.toFixed(2)} ×`,
  );
  console.log(`resident ${megabytes.toFixed(0)} MB at most`);
  if (ratio > aims.ratio)
    console.error(
      `memory: the last items cost ${ratio.toFixed(2)} times the first, the aim is ${aims.ratio}`,
    );
  if (megabytes > aims.megabytes)
    console.error(`memory: ${megabytes.toFixed(0)} MB, the aim is ${aims.megabytes}`);
}
