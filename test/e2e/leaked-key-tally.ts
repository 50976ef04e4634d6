import { accessSync, chmodSync, constants, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import prettyBytes from "pretty-bytes";
import type { Searched } from "./leaked-key.js";

/** The environment variable with the name of the file that lists the processes that tests start. */
export const processTally = "BULKGEN_PROCESS_TALLY";

/**
 * Around all tests: places are made in one folder, in memory unless TMPDIR says where, which is gone when they have
 * ended. Then it prints how many processes were started, and in how much the key was looked for.
 */
export function setup(): () => void {
  const within = process.env["TMPDIR"] ?? (isWritable(inMemory) ? inMemory : tmpdir());
  const folder = mkdtempSync(join(within, "bulkgen-tests-"));
  // PostgreSQL, as a user of its own, has its data further down.
  chmodSync(folder, 0o755);
  process.env["TMPDIR"] = folder;
  const tally = join(folder, "searched.jsonl");
  process.env["BULKGEN_LEAKED_KEY_TALLY"] = tally;
  const processes = join(folder, "processes.jsonl");
  process.env[processTally] = processes;
  return () => {
    if (existsSync(processes))
      console.log(`processes started: ${readFileSync(processes, "utf8").trimEnd().split("\n").length}`);
    if (existsSync(tally)) console.log(summary(readFileSync(tally, "utf8")));
    rmSync(folder, { recursive: true, force: true });
  };
}

/**
 * A file system in memory, on Linux. Every command opens several databases and syncs each of its writes; that the order
 * of the syncs is right is proven by `npm run torture`.
 */
const inMemory = "/dev/shm";

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function summary(lines: string): string {
  const all = lines
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Searched);
  const sum = (what: "files" | "bytes" | "outputs") => all.reduce((total, each) => total + each[what], 0);
  const found = all.reduce((total, each) => total + each.found.length, 0);
  return `the API key was looked for in ${sum("files")} files (${prettyBytes(sum("bytes"))}) and ${sum("outputs")} outputs of processes: found ${found} times`;
}
