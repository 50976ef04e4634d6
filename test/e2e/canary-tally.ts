import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import prettyBytes from "pretty-bytes";
import type { Searched } from "./canary.js";

/** Around all tests: what was searched for the key is counted, and told at the end. */
export function setup(): () => void {
  const folder = mkdtempSync(join(tmpdir(), "bulkgen-canary-"));
  const tally = join(folder, "searched.jsonl");
  process.env["BULKGEN_CANARY_TALLY"] = tally;
  return () => {
    if (existsSync(tally)) console.log(summary(readFileSync(tally, "utf8")));
    rmSync(folder, { recursive: true });
  };
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
