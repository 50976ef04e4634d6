import { createHash } from "node:crypto";
import { join, posix } from "node:path";
import { asRecord, parseJson } from "../api/values.js";
import type { Disk } from "../core/ports/disk.js";
import { wholeOf } from "../text/pieces.js";
import { folderBelow, linked, removeName } from "./disk/names.js";

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
  if (await linked(disk, from, join(folder, file))) {
    // The damaged file loses its own name next.
    await disk.syncFolder(folder);
    await disk.append(join(folder, "index.jsonl"), `${JSON.stringify({ file, ...facts })}\n`);
  }
  return `${quarantineName}/${file}`;
}

/** The newest download of an output that failed its check, as it came; null if there is none. Rejects with errors of the disk. */
export async function quarantined(
  disk: Disk,
  jobFolder: string,
  { task, output }: Pick<QuarantineFacts, "task" | "output">,
): Promise<(QuarantineFacts & { path: string }) | null> {
  const folder = join(jobFolder, quarantineName);
  if ((await disk.size(join(folder, "index.jsonl"))) === null) return null;
  const text = (await wholeOf(disk.read(join(folder, "index.jsonl")))).toString("utf8");
  for (const line of text.split("\n").toReversed()) {
    const { file, ...facts } = asRecord(parseJson(line)) as unknown as QuarantineFacts & { file?: unknown };
    const isOfOutput = facts.task === task && facts.output === output && typeof facts.reason === "string";
    // Only a name that `quarantine` gives.
    if (!isOfOutput || typeof file !== "string" || file !== posix.basename(file)) continue;
    const path = join(folder, file);
    if ((await disk.size(path)) === facts.bytes) return { ...facts, path };
  }
  return null;
}

/** Moves a damaged file into the quarantine, so that its name is free for the good file. Rejects with errors of the disk. */
export async function setAside(
  disk: Disk,
  jobFolder: string,
  known: Pick<QuarantineFacts, "item" | "task" | "output"> & { file: string },
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
  await removeName(disk, path);
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
