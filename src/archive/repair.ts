import { createHash } from "node:crypto";
import { join, posix } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import type { KnownFile } from "./examine.js";
import { quarantine } from "./quarantine.js";

/** Moves a damaged file into the quarantine, so that its name is free for the good file. Rejects with errors of the disk. */
export async function setAside(
  disk: Disk,
  jobFolder: string,
  known: KnownFile & { item: string; task: string; output: number },
  reason: string,
): Promise<void> {
  const { file, item, task, output } = known;
  const path = join(jobFolder, file);
  const facts = {
    item,
    task,
    output,
    ...(await contentOf(disk, path)),
    reason: `damaged on the disk: ${reason}`,
  };
  await quarantine(disk, jobFolder, path, `damaged-${file}`, facts);
  await disk.unlink(path).catch((error: { code?: unknown }) => {
    // On a filesystem without hard links the file was moved.
    if (error.code !== "ENOENT") throw error;
  });
  await disk.syncFolder(join(jobFolder, posix.dirname(file)));
}

/** The size and hash of the readable part of a file. */
async function contentOf(disk: Disk, path: string): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const piece of disk.read(path)) {
      hash.update(piece);
      bytes += piece.length;
    }
  } catch {}
  return { bytes, sha256: hash.digest("hex") };
}
