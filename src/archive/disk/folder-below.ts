import { join } from "node:path";
import type { Disk } from "../../core/ports/disk.js";
import { foldName } from "./names.js";

/**
 * Makes a folder below the job's folder, level by level, and returns its path. A symbolic link on the way is refused,
 * because it would lead files elsewhere; the job's folder itself may be a link. Rejects with ELOOP and errors of the disk.
 */
export async function folderBelow(disk: Disk, jobFolder: string, below: string): Promise<string> {
  await disk.makeFolder(jobFolder);
  let real = await disk.realPath(jobFolder);
  let folder = jobFolder;
  for (const level of below === "." ? [] : below.split("/")) {
    folder = join(folder, level);
    real = join(real, level);
    await disk.makeFolder(folder);
    // Some systems normalise accents and case.
    if (foldName(await disk.realPath(folder)) !== foldName(real))
      throw Object.assign(new Error(`${folder} is a symbolic link; expected a folder`), { code: "ELOOP" });
  }
  return folder;
}
