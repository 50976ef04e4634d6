import { join } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { folderBelow } from "./disk/names.js";

/** Downloads that failed their check, kept so that a person can see why. They never count as archived. */
export const quarantineName = "_quarantine";

export interface QuarantineFacts {
  item: string;
  task: string;
  output: number;
  bytes: number;
  sha256: string;
  reason: string;
}

/**
 * Links the file at `from` into the job's quarantine and writes the reason to the index there. The same content is
 * kept once. Returns the path relative to the job's folder. Rejects with errors of the disk.
 */
export async function quarantine(
  disk: Disk,
  jobFolder: string,
  from: string,
  name: string,
  facts: QuarantineFacts,
): Promise<string> {
  const folder = await folderBelow(disk, jobFolder, quarantineName);
  // Not under its own extension: an unknown page should not open with a click.
  const file = `${name.replaceAll("/", "-").slice(0, 60)}-${facts.sha256.slice(0, 12)}.bad`;
  try {
    await disk.link(from, join(folder, file));
    // The damaged file loses its own name next.
    await disk.syncFolder(folder);
    await disk.append(join(folder, "index.jsonl"), `${JSON.stringify({ file, ...facts })}\n`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EEXIST") throw error;
  }
  return `${quarantineName}/${file}`;
}
