/**
 * What reading commands take in a workspace of many archived items, made as for *Resume*: seconds and the most memory that
 * the process had, beside a tenth of the items. The sheet has a row for each. The files themselves are not there, so that
 * `verify` finds every one of them missing, which is the most that it can have to tell. At the end the database is removed,
 * and rebuilt. Needs the build in dist/; the folder is on tmpfs where there is one.
 *
 *   node test/bench/reading.mjs [--short] [--items N]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environmentOf, makeBigWorkspace } from "./big-workspace.mjs";
import { numberOf } from "./flags.mjs";
import { startService } from "./watched-service.mjs";

const main = fileURLToPath(new URL("../../dist/bin/bulkgen.js", import.meta.url));
const items = numberOf("--items", process.argv.includes("--short") ? 2_000 : 200_000);
const sizes = [items / 10, items];
const commands = {
  status: [],
  report: [],
  "find 'number 7'": ["find", "number", "7"],
  export: [],
  "export --sample": ["export", "--sample", "1000"],
  "export to xlsx": ["export", "--format", "xlsx"],
  verify: [],
  "doctor --json": ["doctor", "--json"],
  "doctor --rebuild": ["doctor", "--rebuild", "--yes"],
};
/** What a command tells of itself when it ends. */
const teller = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from "node:fs";
  process.on("exit", () => writeSync(3, String(process.resourceUsage().maxRSS)));
`)}`;

const place = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "bulkgen-reading-"));
const service = await startService();
try {
  for (const archived of sizes)
    await makeBigWorkspace({
      ...{ folder: join(place, `${archived}`), url: service.url, main },
      ...{ archived, submitting: 0, planned: 0 },
    });
  console.log(`reading commands with ${sizes.join(" and ")} archived items, Node ${process.version}`);
  for (const [name, words] of Object.entries(commands)) {
    const taken = [];
    for (const size of sizes)
      taken.push(await asked(join(place, `${size}`), words.length > 0 ? words : [name]));
    const [few, many] = taken;
    console.log(
      `${name.padEnd(18)} ${few.seconds.toFixed(1)} s and ${many.seconds.toFixed(1)} s, ` +
        `${few.megabytes.toFixed(0)} MB and ${many.megabytes.toFixed(0)} MB`,
    );
  }
} finally {
  service.stop();
  rmSync(place, { recursive: true, force: true });
}

async function asked(folder, words) {
  if (words.includes("--rebuild"))
    for (const end of ["", "-wal", "-shm"]) rmSync(join(folder, `.bulkgen/state.db${end}`), { force: true });
  const began = performance.now();
  const child = spawn(process.execPath, ["--import", teller, main, ...words], {
    cwd: folder,
    env: environmentOf(folder, service.url),
    stdio: ["ignore", "ignore", "ignore", "pipe"],
  });
  let told = "";
  child.stdio[3].on("data", (text) => {
    told += text;
  });
  const [code] = await once(child, "close");
  // 4 and 5: a check that found something.
  if (![0, 4, 5].includes(code)) throw new Error(`bulkgen ${words.join(" ")} ended with ${code}`);
  return { seconds: (performance.now() - began) / 1_000, megabytes: Number(told) / 1_024 };
}
