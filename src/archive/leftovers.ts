import { dirname, join } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { temporaryName } from "./disk/temporary.js";

/** Temporary files below a job's folder: absolute paths, in order. Symbolic links are not followed. */
export async function findLeftovers(disk: Disk, jobFolder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of (await disk.list(jobFolder)).toSorted()) {
    const path = join(jobFolder, entry);
    if (entry.endsWith("/")) found.push(...(await findLeftovers(disk, path)));
    else if (temporaryName.test(entry)) found.push(path);
  }
  return found;
}

/**
 * Removes the temporary files of crashed runs and returns their paths. Call it while holding the workspace's lock and
 * before anything is fetched: then no temporary file of this workspace is in use.
 */
export async function removeLeftovers(disk: Disk, jobFolder: string): Promise<string[]> {
  const found = await findLeftovers(disk, jobFolder);
  for (const path of found) await disk.unlink(path);
  for (const folder of new Set(found.map((path) => dirname(path)))) await disk.syncFolder(folder);
  return found;
}
