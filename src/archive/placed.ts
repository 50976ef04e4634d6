import { createHash } from "node:crypto";
import type { Disk } from "../core/ports/disk.js";

/** False when the name is taken. */
export async function linked(disk: Disk, from: string, to: string): Promise<boolean> {
  try {
    await disk.link(from, to);
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === "EEXIST") return false;
    throw error;
  }
}

/** Whether the file at `path` has that content. */
export async function holds(
  disk: Disk,
  path: string,
  { bytes, sha256 }: { bytes: number; sha256: string },
): Promise<boolean> {
  if ((await disk.size(path)) !== bytes) return false;
  const hash = createHash("sha256");
  for await (const piece of disk.read(path)) hash.update(piece);
  return hash.digest("hex") === sha256;
}
