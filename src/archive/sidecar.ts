import { join } from "node:path";
import type { Disk } from "../core/ports/disk.js";
import { openTemporary } from "./disk/temporary.js";
import { type IndexLine, identityOf } from "./index-file.js";

/** The `NAME.json` beside `NAME.png`: a copy of its index line, for tools that read one file at a time. */
export function sidecarOf(file: string): string {
  return file.replace(/\.[^./]*$/, "") + sidecarExtension;
}

export const sidecarExtension = ".json";

/** Writes the sidecar durably. The caller syncs the folder. */
export async function writeSidecar(
  disk: Disk,
  jobFolder: string,
  folder: string,
  line: IndexLine,
): Promise<void> {
  const temporary = await openTemporary(disk, folder, `sidecar ${identityOf(line)}`);
  try {
    await temporary.file.write(Buffer.from(`${JSON.stringify(line, null, 2)}\n`));
    await temporary.file.sync();
    await disk.link(temporary.path, join(jobFolder, sidecarOf(line.file)));
  } catch (error) {
    // A redo after a crash finds its own sidecar: no other file may have this name.
    if ((error as { code?: unknown }).code !== "EEXIST") throw error;
  } finally {
    await temporary.discard();
  }
}
