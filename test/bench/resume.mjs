/**
 * How soon a run of a million items goes on: from the start of `bulkgen resume` to its first request and to its first
 * paid one, with the processor time until then as a multiple of `node -e 0`, and the memory. Half of the items are
 * archived, 32 were at the service when the process before ended, and the rest is planned. Needs the build in dist/ and
 * Linux's /proc.
 *
 *   node test/bench/resume.mjs [--short] [--items N] [--rounds N]
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { makeBigWorkspace } from "./big-workspace.mjs";
import { median, newFolder, numberOf, short, start } from "./setup.mjs";
import { startWatchedService, usedBy } from "./watched-service.mjs";

const items = numberOf("--items", short ? 1_000 : 1_000_000);
const rounds = numberOf("--rounds", short ? 1 : 3);
const submitting = 32;
const aimMs = 2_000;

const folder = newFolder("resume");
const service = await startWatchedService();
try {
  await measure();
} finally {
  service.stop();
}

async function measure() {
  const archived = items / 2;
  const planned = items - archived - submitting;
  await makeBigWorkspace({ folder, url: service.url, archived, submitting, planned });
  const found = [];
  for (let round = 0; round < rounds; round++) found.push({ node: bareNode(), ...(await resumed()) });
  const middle = (of) => median(found.map(of));
  const [first, paid, node] = [
    middle(({ first }) => first.ms),
    middle(({ paid }) => paid.ms),
    middle(({ node }) => node),
  ];
  const [firstCpu, paidCpu] = [middle(({ first }) => first.cpuMs), middle(({ paid }) => paid.cpuMs)];
  console.log(`resume of ${items} items on Node ${process.version}, median of ${rounds}`);
  console.log(
    `first request  ${first.toFixed(0)} ms, processor ${firstCpu} ms, ${(firstCpu / node).toFixed(1)} × node -e 0`,
  );
  console.log(
    `first paid one ${paid.toFixed(0)} ms, processor ${paidCpu} ms, ${(paidCpu / node).toFixed(1)} × node -e 0`,
  );
  console.log(`resident then  ${middle(({ paid }) => paid.megabytes).toFixed(0)} MB at most`);
  if (paid > aimMs)
    console.error(
      `resume: its first paid request comes after ${(paid / 1000).toFixed(1)} s, the aim is ${aimMs / 1000} s`,
    );
}

/** Starts the command, and kills it when its first paid request arrives: the next round finds the run as it was left. */
async function resumed() {
  const began = performance.now();
  const child = start(folder, service.url, ["resume", "--quiet"]);
  const found = {};
  service.listen(({ method }) => {
    const kind = method === "POST" ? "paid" : "first";
    found[kind] ??= { ms: performance.now() - began, ...usedBy(child.pid) };
    if (kind === "paid") child.kill("SIGKILL");
  });
  await once(child, "exit");
  service.listen(() => {});
  if (!found.paid) throw new Error("resume ended without a paid request");
  return found;
}

/** The processor time (ms) of Node's own start. */
function bareNode() {
  const told =
    'process.on("exit", () => { const { user, system } = process.cpuUsage(); console.log((user + system) / 1000); })';
  return Number(spawnSync(process.execPath, ["-e", told], { encoding: "utf8" }).stdout);
}
