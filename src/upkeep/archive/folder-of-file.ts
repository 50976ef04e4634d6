import { lstatSync } from "node:fs";
import { join } from "node:path";
import { jobFolder } from "../../archive/disk/names.js";
import type { MadeItem, Run } from "../../core/ports/store.js";
import { leavesReally } from "../../text/inside.js";

type SavedFile = Pick<MadeItem["files"][number], "file" | "bytes" | "outFolder">;

/**
 * Finds the folder that has a file as it was archived: the one that it was saved in, or another of the job's, if somebody moved
 * it. Undefined for a file that is missing or has another size. `runs` are all of the job, oldest first.
 */
export function locator(runs: readonly Run[]): (file: SavedFile) => string | undefined {
  const jobName = runs.at(-1)?.jobName ?? "";
  const folders = [...new Set(runs.map(jobFolder))].toReversed();
  return ({ file, bytes, outFolder }) =>
    [jobFolder({ outFolder, jobName }), ...folders].find((folder) => sizeOf(folder, file) === bytes);
}

/** A link is none of the outputs: it may lead to a file that nobody wants to pass on. */
function sizeOf(folder: string, file: string): number | null {
  const path = join(folder, file);
  const facts = lstatSync(path, { throwIfNoEntry: false });
  return facts?.isFile() && !leavesReally(folder, path) ? facts.size : null;
}
