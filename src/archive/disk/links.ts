import { createHash } from "node:crypto";
import type { Disk, FileContent } from "../../core/ports/disk.js";

/** Removes a name, which may be gone already: on a filesystem without hard links, or by another process. */
export async function removeName(disk: Disk, path: string): Promise<void> {
  try {
    await disk.unlink(path);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ENOENT") throw error;
  }
}

/** False when the name is taken. */
export async function linked(disk: Disk, from: string, to: string, content?: FileContent): Promise<boolean> {
  try {
    await disk.link(from, to, content);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === "EEXIST") return false;
    throw error;
  }
}

/** Whether the file at `path` has that content. Of a file in a bucket the bucket's word counts: it was hashed when it came. */
export async function holds(
  disk: Disk,
  path: string,
  { bytes, sha256 }: { bytes: number; sha256: string },
): Promise<boolean> {
  if ((await disk.size(path)) !== bytes) return false;
  const inBucket = await disk.inBucket?.(path);
  if (inBucket) return inBucket.sha256 === sha256;
  const hash = createHash("sha256");
  for await (const piece of disk.read(path)) hash.update(piece);
  return hash.digest("hex") === sha256;
}
