import { dirname } from "node:path";
import type { Disk } from "../../core/ports/disk.js";

/** Room for the archive's files, and what the disk says where it takes none. */

/** Bytes that stay free: the state that says what was paid must always find room. */
export const reserveBytes = 64 * 2 ** 20;

/** The disk takes no file now; `code` is Node's (ENOSPC, EACCES, EROFS …). Nothing is lost. */
export interface DiskRefusal {
  kind: "disk";
  code: string;
  reason: string;
}

/** Why the disk would refuse every file of a job now, as a save would say it; null where there is room. */
export async function refusalNow(disk: Disk, jobFolder: string): Promise<DiskRefusal | null> {
  try {
    checkSpace(await freeFor(disk, jobFolder), 0);
    return null;
  } catch (error) {
    return refusalOf(error, jobFolder);
  }
}

/** Bytes that are free where a folder is, or will be made. Rejects with errors of the disk. */
export async function freeFor(disk: Disk, folder: string): Promise<number> {
  const above = dirname(folder);
  return disk.freeBytes(folder).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== "ENOENT" || above === folder) throw error;
    return freeFor(disk, above);
  });
}

/** Throws as the system does when the disk is full: where `free` bytes do not hold `bytes` more and the reserve. */
export function checkSpace(free: number, bytes: number): void {
  if (free >= bytes + reserveBytes) return;
  const expected = `${bytes === 0 ? "" : `${bytes} and `}a reserve of ${reserveBytes}`;
  const message = `ENOSPC: ${free} bytes are free; expected ${expected}; free some`;
  throw Object.assign(new Error(message), { code: "ENOSPC" });
}

/** What an error of the disk means for a file of a job. Throws what is a defect of the program. */
export function refusalOf(error: unknown, jobFolder: string): DiskRefusal {
  const code = (error as { code?: unknown }).code;
  // The system's codes look like ENOSPC; Node's own, such as ERR_INVALID_ARG_TYPE, mean a defect.
  if (typeof code !== "string" || !/^E[A-Z0-9]+$/.test(code)) throw error;
  return { kind: "disk", code, reason: `${code} in ${jobFolder}: ${(error as Error).message}` };
}
