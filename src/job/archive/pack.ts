import { createWriteStream, statSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { jobFolder } from "../../archive/disk/names.js";
import { nodeDisk } from "../../archive/disk/node-disk.js";
import { Indexes } from "../../archive/index-file.js";
import type { Clock } from "../../clock.js";
import { EarlyExit } from "../../core/exit.js";
import type { ArchivedFile, Run } from "../../core/ports/store.js";

export interface Pack {
  /** Absolute path of the archive to write. */
  zip: string;
  /** Every run of the job, oldest first. */
  runs: readonly Run[];
  files: readonly ArchivedFile[];
  /** Name and content of the sheet that goes along. */
  sheet: { name: string; content: Uint8Array };
  clock: Clock;
  signal: AbortSignal;
}

/**
 * Packs files with their lines of the index, as a stream: media do not fit into memory. The archive has its name only
 * when it is whole. Throws EarlyExit when a file is not what was archived, and then writes nothing.
 */
export async function pack({ zip, runs, files, sheet, clock, signal }: Pack): Promise<void> {
  const found = located(files, [...new Set(runs.map(jobFolder))].toReversed());
  const { ZipFile } = await import("yazl");
  const archive = new ZipFile();
  const mtime = new Date(clock.now());
  const lines: string[] = [];
  const indexes = new Indexes(nodeDisk);
  for (const { folder, file } of found) {
    // Media are compressed already.
    archive.addFile(join(folder, file), file, { compress: false });
    const index = await indexes.of(folder);
    const identity = index.holder(file);
    const line = typeof identity === "string" ? index.find(identity) : undefined;
    if (line) lines.push(JSON.stringify(line));
  }
  archive.addBuffer(Buffer.from(lines.map((line) => `${line}\n`).join("")), "index.jsonl", { mtime });
  archive.addBuffer(Buffer.from(sheet.content), sheet.name, { mtime });
  archive.end();
  const part = `${zip}.part`;
  try {
    await pipeline(archive.outputStream, createWriteStream(part, { flush: true }), { signal });
    await rename(part, zip);
  } catch (error) {
    await rm(part, { force: true });
    if (signal.aborted) throw new EarlyExit("interrupted", "interrupted; nothing was packed");
    throw error;
  }
}

/** Where each file lies. */
function located(
  files: readonly ArchivedFile[],
  folders: readonly string[],
): { folder: string; file: string }[] {
  const missing: string[] = [];
  const found = files.flatMap(({ file, bytes }) => {
    const folder = folders.find((one) => sizeOf(join(one, file)) === bytes);
    if (folder === undefined) missing.push(file);
    return folder === undefined ? [] : [{ folder, file }];
  });
  if (missing.length === 0) return found;
  const named = missing.slice(0, namesMax).join(", ");
  const more = missing.length > namesMax ? ` and ${missing.length - namesMax} more` : "";
  throw new EarlyExit(
    "usage",
    `${missing.length === 1 ? "1 file is" : `${missing.length} files are`} gone or not as archived: ${named}${more}. ` +
      "Nothing was packed. `bulkgen run MANIFEST --missing fetch` gets lost files again, for no credits.",
  );
}

const namesMax = 5;

function sizeOf(path: string): number | null {
  return statSync(path, { throwIfNoEntry: false })?.size ?? null;
}
