import { join } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { folderBelow } from "./disk/folder-below.js";

/** Downloads that are not what was ordered, kept for whoever wants to know why. They never count as archived. */
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
 * Gives the file at `from` a name in the job's quarantine and notes the reason beside it. The same content is kept
 * once, however often it comes. Returns the path relative to the job's folder. Rejects with errors of the disk.
 */
export async function quarantine(
  disk: Disk,
  jobFolder: string,
  from: string,
  name: string,
  facts: QuarantineFacts,
): Promise<string> {
  const folder = await folderBelow(disk, jobFolder, quarantineName);
  // Not under its own extension: a page from a stranger should not open with a click.
  const file = `${name.replaceAll("/", "-").slice(0, 60)}-${facts.sha256.slice(0, 12)}.bad`;
  try {
    await disk.link(from, join(folder, file));
    await disk.append(join(folder, "index.jsonl"), `${JSON.stringify({ file, ...facts })}\n`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "EEXIST") throw error;
  }
  return `${quarantineName}/${file}`;
}
