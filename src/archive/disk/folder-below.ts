import { join } from "node:path";
import type { Disk } from "../../core/ports/disk.js";
import { foldName } from "./names.js";

/**
 * Makes a folder below the job's folder, level by level, and returns its path: a symbolic link that somebody planted
 * there must not lead files elsewhere. The job's folder itself may be one. Rejects with ELOOP, and errors of the disk.
 */
export async function folderBelow(disk: Disk, jobFolder: string, below: string): Promise<string> {
  await disk.makeFolder(jobFolder);
  let real = await disk.realPath(jobFolder);
  let folder = jobFolder;
  for (const level of below === "." ? [] : below.split("/")) {
    folder = join(folder, level);
    real = join(real, level);
    await disk.makeFolder(folder);
    // Some systems write accents and capitals in their own way.
    if (foldName(await disk.realPath(folder)) !== foldName(real))
      throw Object.assign(new Error(`${folder} is a symbolic link; expected a folder`), { code: "ELOOP" });
  }
  return folder;
}
