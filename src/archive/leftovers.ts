import { dirname, join } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { temporaryName } from "./disk/temporary.js";
import { removeName } from "./move.js";

/** Temporary files below a job's folder: absolute paths, in order. Symbolic links are not followed. */
export async function findLeftovers(disk: Disk, jobFolder: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await disk.list(jobFolder)) {
    const path = join(jobFolder, entry);
    if (entry.endsWith("/")) found.push(...(await findLeftovers(disk, path)));
    else if (temporaryName.test(entry)) found.push(path);
  }
  return found.toSorted();
}

/**
 * Removes the temporary files of crashed runs and returns their paths. Call it while holding the workspace's lock and
 * before anything is fetched. A worker of a fleet may still have one, which it removes itself.
 */
export async function removeLeftovers(disk: Disk, jobFolder: string): Promise<string[]> {
  const found = await findLeftovers(disk, jobFolder);
  for (const path of found) await removeName(disk, path);
  for (const folder of new Set(found.map((path) => dirname(path)))) await disk.syncFolder(folder);
  return found;
}
