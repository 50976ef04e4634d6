import { dirname } from "node:path";
import { BucketError } from "../../bucket/bucket.js";
import type { Disk } from "../../core/ports/disk.js";
import { fileSize } from "../../text/amounts.js";

/** Bytes that stay free, so that the databases always have room. */
export const reserveBytes = 64 * 2 ** 20;

/** The disk refuses files for now; `code` is Node's (ENOSPC, EACCES, EROFS …), or BUCKET for the archive's bucket. Nothing is lost. */
export interface DiskRefusal {
  kind: "disk";
  code: string;
  reason: string;
}

/** Why the disk would refuse every file of a job now; null when there is room. */
export async function refusalNow(disk: Disk, jobFolder: string): Promise<DiskRefusal | null> {
  try {
    checkSpace(await freeFor(disk, jobFolder), 0);
    return null;
  } catch (error) {
    return refusalOf(error, jobFolder);
  }
}

/** Free bytes where a folder is or will be. Rejects with errors of the disk. */
export async function freeFor(disk: Disk, folder: string): Promise<number> {
  const above = dirname(folder);
  return disk.freeBytes(folder).catch((error: unknown) => {
    if ((error as { code?: unknown }).code !== "ENOENT" || above === folder) throw error;
    return freeFor(disk, above);
  });
}

/** Throws ENOSPC, as the system does, when `free` is less than `bytes` plus the reserve. */
export function checkSpace(free: number, bytes: number): void {
  if (free >= bytes + reserveBytes) return;
  const message = `disk full, ${fileSize(free)} free and ${fileSize(bytes + reserveBytes)} needed`;
  throw Object.assign(new Error(message), { code: "ENOSPC" });
}

/** The refusal behind an error of the disk, or of the bucket. Rethrows other errors: they are defects of the program. */
export function refusalOf(error: unknown, jobFolder: string): DiskRefusal {
  if (error instanceof BucketError) return { kind: "disk", code: "BUCKET", reason: error.message };
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (code === "SQLITE_FULL") return { kind: "disk", code: "ENOSPC", reason: databaseFull(String(message)) };
  // Codes of the system look like ENOSPC. Node's own, such as ERR_INVALID_ARG_TYPE, mean a defect.
  if (typeof code !== "string" || !/^E[A-Z0-9]+$/.test(code)) throw error;
  return { kind: "disk", code, reason: `${message} (${jobFolder})` };
}

/**
 * An error of a database begins with the name of its file. The index has no such file: SQLite moves what does not fit its
 * cache to a temporary one.
 */
function databaseFull(message: string): string {
  return message.includes(": ") ? message : `${message} (temporary files)`;
}
